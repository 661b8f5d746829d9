"""What leaves a lake: snapshots that are expired, and files that no snapshot names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from menzil.spark.lake import commit
from menzil.spark.lake.errors import LakeBusyError
from menzil.spark.lake.hint import FILE, write_hint
from menzil.spark.lake.place import file_system, inside
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.table import Lake, demand, open_lake

if TYPE_CHECKING:
    from pyiceberg.table import Table

#: How long a snapshot stays that has no tag, and how old a file must be that no snapshot names: longer than a run.
KEEP, ORPHANED = timedelta(days=5), timedelta(days=1)
TRIES = 5


@dataclass(frozen=True)
class SweepReport:
    """Snapshots that expired, and files and bytes that were removed."""

    snapshots: int
    removed: int
    size: int


def sweep(
    lake: str | os.PathLike[str],
    dsn: str,
    *,
    keep: timedelta = KEEP,
    orphaned: timedelta = ORPHANED,
    catalog: str | None = None,
) -> SweepReport:
    """Let snapshots go that are older than `keep` and have no tag, and files that no snapshot names. Driver, no Spark.

    A file younger than `orphaned` may belong to a run that has not committed yet, and stays.
    """
    found = open_lake(lake, dsn, catalog=catalog)
    demand(found)
    return sweep_lake(found, keep=keep, orphaned=orphaned)


def sweep_lake(lake: Lake, *, keep: timedelta = KEEP, orphaned: timedelta = ORPHANED) -> SweepReport:
    """The same of a lake that is open."""
    snapshots = removed = size = 0
    for name in (MESSAGES, EVENTS):
        if lake.table(name) is not None:
            snapshots += _expire(lake, name, datetime.now(UTC) - keep)
            files, number = _orphans(lake, name, datetime.now(UTC) - orphaned)
            removed, size = removed + files, size + number
    return SweepReport(snapshots, removed, size)


def _expire(lake: Lake, name: str, before: datetime) -> int:
    for _ in range(TRIES):
        table = lake.refresh(name)
        assert table is not None
        kept = {ref.snapshot_id for ref in table.metadata.refs.values()}
        old = [
            each.snapshot_id
            for each in table.metadata.snapshots
            if each.snapshot_id not in kept and each.timestamp_ms < before.timestamp() * 1000
        ]
        if not old:
            return 0
        try:
            table.maintenance.expire_snapshots().by_ids(old).commit()
        except commit.CONFLICT:
            continue
        renewed = lake.refresh(name)
        assert renewed is not None
        write_hint(renewed)
        return len(old)
    raise LakeBusyError(f"Others keep committing to {name}.")


def _orphans(lake: Lake, name: str, before: datetime) -> tuple[int, int]:
    """Listed first and compared later: what is committed in between is named, what is written then is young."""
    from pyarrow.fs import FileSelector

    system = file_system(lake.root, lake.options)
    place = inside(f"{lake.root}/{name}")
    there = [
        info
        for part in ("data", "metadata")
        for info in system.get_file_info(FileSelector(f"{place}/{part}", recursive=True, allow_not_found=True))
        if info.is_file and info.mtime is not None and info.mtime < before and info.base_name != FILE
    ]
    if not there:
        return 0, 0
    table = lake.refresh(name)
    assert table is not None
    named = {inside(path) for path in _named(table)}
    gone = [info for info in there if info.path not in named]
    for info in gone:
        system.delete_file(info.path)
    return len(gone), sum(info.size for info in gone)


def _named(table: Table) -> set[str]:
    """Every file that a snapshot names, and the metadata that leads to it."""
    found = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    found |= {each.statistics_path for each in table.metadata.statistics}
    manifests = {}
    for snapshot in table.metadata.snapshots:
        found.add(snapshot.manifest_list)
        manifests.update({each.manifest_path: each for each in snapshot.manifests(table.io)})
    for path, manifest in manifests.items():
        found.add(path)
        found |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)}
    return found
