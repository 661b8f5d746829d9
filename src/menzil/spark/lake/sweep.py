"""What leaves a lake: snapshots that are expired, and files that no snapshot names."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from menzil.ops.lake import lake_is_free
from menzil.ops.run import run
from menzil.spark.database import asking
from menzil.spark.lake import commit
from menzil.spark.lake.errors import LakeBusyError
from menzil.spark.lake.hint import FILE, write_hint
from menzil.spark.lake.place import file_system, inside
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.table import Lake, open_own

if TYPE_CHECKING:
    from pyiceberg.table import Table

#: How long a snapshot stays without a tag, and how old a file must be that no snapshot names: longer than a compaction.
KEEP, ORPHANED = timedelta(days=5), timedelta(days=1)
TRIES = 5
#: Seconds to wait for an export, which may be one that has just ended and whose connection is not closed yet.
PATIENCE = 3.0


@dataclass(frozen=True)
class SweepReport:
    """Snapshots that expired, and files and bytes that were removed.

    Where an export is at work (`busy`) no file is removed: it may have been written days ago, and count tomorrow.
    """

    snapshots: int
    removed: int
    size: int
    busy: bool = False


def sweep(
    lake: str | os.PathLike[str],
    dsn: str,
    *,
    keep: timedelta = KEEP,
    orphaned: timedelta = ORPHANED,
    catalog: str | None = None,
) -> SweepReport:
    """Let snapshots go that are older than `keep` and have no tag, and files that no snapshot names. Driver, no Spark.

    A file younger than `orphaned` may belong to a compaction that has not committed yet, and stays.
    """
    return sweep_lake(open_own(lake, dsn, catalog=catalog), dsn, keep=keep, orphaned=orphaned)


def sweep_lake(lake: Lake, dsn: str, *, keep: timedelta = KEEP, orphaned: timedelta = ORPHANED) -> SweepReport:
    """The same of a lake that is open."""
    names = [name for name in (MESSAGES, EVENTS) if lake.table(name) is not None]
    now = _now(lake)
    snapshots = sum(_expire(lake, name, now - keep) for name in names)
    now = _now(lake)
    # Asked before files are listed: an export that begins later only writes files that are too young.
    if not _is_free(dsn, lake.root):
        return SweepReport(snapshots, 0, 0, busy=True)
    found = [_orphans(lake, name, now - orphaned) for name in names]
    return SweepReport(snapshots, sum(files for files, _ in found), sum(size for _, size in found))


def _is_free(dsn: str, root: str) -> bool:
    deadline = time.monotonic() + PATIENCE
    with asking(dsn, "menzil lake sweep") as conn:
        while not run(conn, lake_is_free(root)):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
    return True


def _now(lake: Lake) -> datetime:
    """The time by this machine, or by the store if that is earlier: a clock that is ahead must make no file old."""
    system = file_system(lake.root, lake.options)
    path = inside(f"{lake.root}/{MESSAGES}/metadata/{uuid4().hex}.clock")
    with system.open_output_stream(path) as stream:
        stream.write(b"menzil")
    try:
        dated = system.get_file_info(path).mtime
    finally:
        system.delete_file(path)
    return datetime.now(UTC) if dated is None else min(dated, datetime.now(UTC))


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
    found |= {each.statistics_path for each in (*table.metadata.statistics, *table.metadata.partition_statistics)}
    manifests = {}
    for snapshot in table.metadata.snapshots:
        found.add(snapshot.manifest_list)
        manifests.update({each.manifest_path: each for each in snapshot.manifests(table.io)})
    for path, manifest in manifests.items():
        found.add(path)
        found |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)}
    return found
