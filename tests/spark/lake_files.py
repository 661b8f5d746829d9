"""A lake written without Spark: what tasks and the driver of an export do, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Transaction

from menzil.spark.lake import commit, layout
from menzil.spark.lake.cover import Part
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.memory import Slice, cover
from menzil.spark.lake.schema import COLUMNS, MESSAGES
from menzil.spark.lake.table import Lake
from menzil.spark.lake.write import place_of
from menzil.spark.parquet import write as parquet


def written(
    lake: Lake, tx: Transaction, channel: str, ids: Sequence[int], at: datetime, more: dict[str, Any] | None = None
) -> list[parquet.Written]:
    """Files with messages of one channel and one moment, which do not count yet; `more` are other columns of each."""
    shape, month = schema_to_pyarrow(commit.schema_of(tx)), layout.month_label(at)
    said = {"status": "completed"} | (more or {}) | {"channel": channel, "created_at": at}
    rows = [said | {"id": number} for number in ids]
    keys = pa.array([f"{month}/{channel}"] * len(ids))
    table = pa.Table.from_pylist(rows, shape).append_column(parquet.KEY, keys)
    writer = parquet.Writer(place_of(lake, MESSAGES, month, shape))
    for first in range(0, len(ids), parquet.GROUP_ROWS):
        assert not list(writer.take(table.slice(first, parquet.GROUP_ROWS)))
    return list(writer.end())


def begun(lake: Lake) -> Transaction:
    """A transaction on the newest state."""
    return commit.begin(lake.make(MESSAGES), COLUMNS)


def finish(lake: Lake, tx: Transaction, files: Sequence[Any], run: str, part: Part, month: str) -> None:
    """Commit them as an export would."""
    known = lake.memory(MESSAGES).slices(month)
    new = Slice(run, month, (part,), Fingerprint(rows=sum(file.rows for file in files)))
    commit.finish(lake, MESSAGES, tx, commit.data_files(tx, files, lake.root), cover([*known, new]))
