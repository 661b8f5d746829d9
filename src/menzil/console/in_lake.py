"""What lies in the lake: its months, and the file and row group of a message, from the manifests without Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from menzil.model.errors import UsageError
from menzil.spark.lake.layout import directory, month_label
from menzil.spark.lake.load import load
from menzil.spark.lake.manifest import File
from menzil.spark.lake.state import State
from menzil.spark.lake.storage import LocalStorage, open_storage

#: Seconds for which the manifests are believed, and files that are opened for one message.
GOOD_FOR, MOST_FILES = 10.0, 20

_lock = threading.Lock()
_known: dict[str, tuple[float, State]] = {}


def place_of(lake: str, message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return {"lake", "file", "row_group", "row_groups"}; None where the lake does not have the message.

    `row_group` is None where pyarrow is not installed.
    """
    storage = open_storage(lake)
    if not isinstance(storage, LocalStorage):
        raise UsageError("This console looks only into lakes of its own machine.", hint="give --lake a local path")
    found = [file for file in _state(storage).messages.files.values() if _may_hold(file, message)]
    for file in found[:MOST_FILES]:
        group = _row_group(Path(storage.root) / file.path, message["id"])
        if group is not None:
            return {"lake": lake, "file": file.path, "row_group": group[0], "row_groups": group[1]}
    return None


def months(lake: str) -> list[dict[str, Any]]:
    """Months of messages that the lake has, oldest first: {"month", "rows", "bytes", "files", "last_run"}."""
    storage = open_storage(lake)
    if not isinstance(storage, LocalStorage):
        raise UsageError("This console looks only into lakes of its own machine.", hint="give --lake a local path")
    table, found = _state(storage).messages, dict[str, dict[str, Any]]()
    for file in table.files.values():
        one = found.setdefault(file.month, {"month": file.month, "rows": 0, "bytes": 0, "files": 0, "last_run": None})
        one["rows"] += file.fingerprint.rows
        one["bytes"] += file.size
        one["files"] += 1
    for each in table.slices:
        if each.month in found:
            found[each.month]["last_run"] = each.run
    return [found[month] for month in sorted(found)]


def _state(storage: LocalStorage) -> State:
    with _lock:
        at, known = _known.get(storage.root, (0.0, None))
        if known is None or time.monotonic() - at > GOOD_FOR:
            known = load(storage)
            _known[storage.root] = (time.monotonic(), known)
        return known


def _may_hold(file: File, message: Mapping[str, Any]) -> bool:
    low, high = file.fingerprint.min_id, file.fingerprint.max_id
    named = file.endpoint in (message["channel"], directory(message["channel"]))
    within = low is not None and high is not None and low <= message["id"] <= high
    return named and within and file.month == month_label(message["created_at"])


def _row_group(path: Path, number: int) -> tuple[int | None, int | None] | None:
    """The row group of a message and how many there are; None when the file does not have it."""
    try:
        from pyarrow import compute
        from pyarrow.parquet import ParquetFile
    except ImportError:
        return (None, None)
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
