"""Messages go from PostgreSQL to files, and back from them, in one task: COPY, Arrow, Parquet. Spark divides the work.

PostgreSQL hashes each row in the query that reads it, so that its values are looked up and made texts once. A task sums
these hashes by file, reads each file back when it is done, and hashes what it finds there. What runs on the driver is
here, what runs in tasks in export_task.

Where a lake has hundreds of channels, columns made of payloads, or lies in an object store, rows go through Spark
instead, which gathers those of a channel from all tasks (export_rows, lake.write).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from menzil.ops.lake import ArchiveCensus
from menzil.spark.jobs import export_task as task
from menzil.spark.lake import commit, layout
from menzil.spark.lake.cover import Part, moment
from menzil.spark.lake.place import local
from menzil.spark.lake.schema import BUCKETS, COLUMNS, MESSAGES, arrow
from menzil.spark.lake.write import place_of
from menzil.spark.parquet.shares import divided, parallel
from menzil.spark.parquet.write import Written, lines
from menzil.spark.source.filters import quoted
from menzil.spark.source.partitions import Piece
from menzil.spark.source.survey import Survey

if TYPE_CHECKING:
    from pyiceberg.table import Transaction
    from pyspark.sql import SparkSession

    from menzil.spark.lake.table import Lake

#: Parts of a table that one task keeps open.
OPEN = 128
#: Rows for which a task of its own is worth it, and rows that each of its files should have at least.
TASK, FILE = 50_000, 100_000
#: Tasks that a small export may have, though their files are smaller than that.
SMALL = 4


def fits(lake: Lake, channels: Sequence[str], bucketed: bool) -> bool:
    """Whether one task can do it: it keeps a file open for each part of the table.

    Not on an object store: what is sent to a task would hold its credentials beside the password of the database.
    """
    return local(lake.root) is not None and (bucketed or len(channels) <= OPEN)


def write_messages(
    spark: SparkSession, dsn: str, lake: Lake, tx: Transaction, month: str, parts: Sequence[Part],
    archive: Sequence[ArchiveCensus], channels: Sequence[str],
) -> list[Written]:  # fmt: skip
    """Write the messages of these parts of a month, of which the database said this. Driver."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    hashed = {name: commit.bucket(name) for name in channels} if commit.is_bucketed(tx) else None
    count = tasks(sum(each.row_count for each in archive), BUCKETS if hashed else len(channels), parallel(spark))
    place = place_of(lake, MESSAGES, month, schema_to_pyarrow(commit.schema_of(tx)))
    columns = tuple(name for name in COLUMNS if name != "attempts")
    kind = arrow(COLUMNS).field("attempts").type
    job = task.Job(dsn, layout.month_start(month).isoformat(), place, columns, kind, hashed, month)
    work = []
    for part, about in zip(parts, archive, strict=True):
        tries = about.failed_attempt_count > 0
        work += [(piece, conditions, tries) for piece, conditions in _pieces(dsn, month, part, count)]
    shares = [work[at::count] for at in range(min(count, len(work)))]
    return lines(bytes(row.line) for row in divided(spark, shares, task.messages(job), "line binary"))


def tasks(rows: int, keys: int, parallel: int) -> int:
    """How many tasks: each makes a file for every part of the table, and small files are a burden to all readers."""
    return max(1, min(parallel, max(rows // (max(1, keys) * FILE), min(SMALL, rows // TASK))))


def _pieces(dsn: str, month: str, part: Part, count: int) -> Iterator[tuple[Piece, list[str]]]:
    """What to read, and which conditions hold for it."""
    first = max(moment(layout.month_start(month)), part.created_from or "")
    end = min(moment(layout.month_end(month)), part.created_until or "~")
    created = [f"created_at >= '{first}'::timestamptz", f"created_at < '{end}'::timestamptz"]
    # A snapshot in which all below `until` is over and nothing else has begun is the upper bound in other words.
    snapshot = f"{part.until}:{part.until}:"
    with Survey(dsn) as survey:
        if part.start:  # the index of ends leads to what is new
            found = survey.ended(created, part.start, snapshot)
        else:  # that of times does not like to be asked for blocks as well
            found = survey.archive(created, 1 if part.created_from else count)
    for piece in found:
        yield piece, [*created, f"pg_visible_in_snapshot(ended_xid, {quoted(snapshot)}::pg_snapshot)"]
