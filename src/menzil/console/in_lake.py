"""What lies in the lake, from its tables' metadata without Spark: months, and the file and row group of a message."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from menzil.model.errors import UsageError

if TYPE_CHECKING:
    from menzil.spark.lake.table import Lake

#: Seconds for which the metadata is believed, and files that are opened for one message.
GOOD_FOR, MOST_FILES = 10.0, 20

_lock = threading.Lock()
_known: dict[str, tuple[float, Lake]] = {}


def place_of(lake: str, message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return {"lake", "file", "row_group", "row_groups"}; None where the lake does not have the message."""
    from pyiceberg.expressions import And

    from menzil.spark.lake import where
    from menzil.spark.lake.place import local
    from menzil.spark.lake.read import data_files
    from menzil.spark.lake.schema import MESSAGES

    found = _opened(lake)
    root = local(found.root)
    if root is None:
        raise UsageError("This console looks only into lakes of its own machine.", hint="give --lake a local path")
    at = message["created_at"]
    meant = where.created(at, at + timedelta(microseconds=1))
    for column in ("id", "channel"):
        meant = And(meant, where.one_of(column, [message[column]]))
    for file in data_files(found, MESSAGES, meant)[:MOST_FILES]:
        path = Path(local(file.file_path) or file.file_path)
        group = _row_group(path, message["id"])
        if group is not None:
            shown = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
            return {"lake": lake, "file": shown, "row_group": group[0], "row_groups": group[1]}
    return None


def months(lake: str) -> list[dict[str, Any]]:
    """Months of messages that the lake has, oldest first: {"month", "rows", "bytes", "files", "last_run"}."""
    opened = _opened(lake)
    from menzil.spark.lake.read import data_files, month_of
    from menzil.spark.lake.schema import MESSAGES

    found = dict[str, dict[str, Any]]()
    for file in data_files(opened, MESSAGES):
        month = month_of(file)
        one = found.setdefault(month, {"month": month, "rows": 0, "bytes": 0, "files": 0, "last_run": None})
        one["rows"] += file.record_count
        one["bytes"] += file.file_size_in_bytes
        one["files"] += 1
    memory = opened.memory(MESSAGES)
    for month, one in found.items():
        one["last_run"] = next((each.run for each in reversed(memory.slices(month))), None)
    return [found[month] for month in sorted(found)]


def _opened(lake: str) -> Lake:
    try:
        from menzil.spark.lake.table import open_lake
    except ImportError as error:
        raise UsageError("This console lacks the extra `lake`.", hint="pip install 'menzil[lake]'") from error
    with _lock:
        at, known = _known.get(lake, (0.0, None))
        if known is None or time.monotonic() - at > GOOD_FOR:
            known = open_lake(lake)
            _known[lake] = (time.monotonic(), known)
        return known


def _row_group(path: Path, number: int) -> tuple[int, int] | None:
    """The row group of a message and how many there are; None when the file does not have it."""
    from pyarrow import compute
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        column = file.schema_arrow.get_field_index("id")
        for group in range(file.num_row_groups):
            about = file.metadata.row_group(group).column(column).statistics
            if about is not None and about.has_min_max and not about.min <= number <= about.max:
                continue
            ids = file.read_row_group(group, columns=["id"]).column("id")
            if compute.any(compute.equal(ids, number)).as_py():
                return group, file.num_row_groups
    return None
