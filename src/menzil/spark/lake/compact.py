"""Compaction: many small files of a part become few large ones, proved before they count."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from menzil.spark.lake import commit, layout
from menzil.spark.lake.errors import LakeBusyError, LakeDamagedError
from menzil.spark.lake.fingerprint import Fingerprint, of_files
from menzil.spark.lake.place import file_system, inside
from menzil.spark.lake.read import columns_of, data_files, frame_of, month_of
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.sweep import KEEP, sweep_lake
from menzil.spark.lake.table import Lake, open_own
from menzil.spark.lake.verify import file_problems
from menzil.spark.lake.write import prove, remove, write

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyspark.sql import SparkSession

#: A file that is smaller than this is small.
SMALL = 64 << 20

#: How often a month is planned again when others keep committing to the table.
TRIES = 5


@dataclass(frozen=True)
class CompactReport:
    """How many files became how many, and how many were removed because nothing names them any more."""

    before: int
    after: int
    removed: int


def compact(
    spark: SparkSession,
    lake: str | os.PathLike[str],
    dsn: str,
    month: str | None = None,
    *,
    small: int = SMALL,
    keep: timedelta = KEEP,
    catalog: str | None = None,
) -> CompactReport:
    """Rewrite the small files of a month, or of all. Readers see the old or the new, never both. Driver.

    The new files are read back and compared with the old ones before they count. Old files stay for readers that began
    before, and for time travel, until `keep` is over.
    """
    if month is not None:
        layout.demand_month(month)
    found = open_own(lake, dsn, catalog=catalog, spark=spark)
    before = after = 0
    for name in (MESSAGES, EVENTS):
        for label in sorted({month_of(file) for file in data_files(found, name)}):
            if month in (None, label):
                old, new = _month(spark, found, name, label, small)
                before, after = before + old, after + new
    return CompactReport(before, after, sweep_lake(found, dsn, keep=keep).removed)


def _month(spark: SparkSession, lake: Lake, name: str, month: str, small: int) -> tuple[int, int]:
    for _ in range(TRIES):
        lake.refresh(name)
        chosen = _small([file for file in data_files(lake, name) if month_of(file) == month], small)
        if not chosen:
            return 0, 0
        made = _rewrite(spark, lake, name, month, chosen)
        if made is not None:
            return len(chosen), made
    raise LakeBusyError(f"Others keep committing to {name} of {month}.")


def _small(files: list[DataFile], small: int) -> list[DataFile]:
    """Small files that have a small neighbour."""
    parts = defaultdict(list)
    for file in files:
        if file.file_size_in_bytes < small:
            parts[str(file.partition)].append(file)
    return [file for neighbours in parts.values() if len(neighbours) > 1 for file in neighbours]


def _rewrite(spark: SparkSession, lake: Lake, name: str, month: str, chosen: list[DataFile]) -> int | None:
    """How many files they became; None when another process committed meanwhile."""
    problems = file_problems(lake, chosen)
    if problems:
        raise LakeDamagedError(problems[0])
    table = lake.tables[name]
    columns = columns_of(lake, name)
    frame = frame_of(spark, lake, [file.file_path for file in chosen], columns)
    paths = [inside(file.file_path) for file in chosen]
    expected = Fingerprint.total(of_files(spark, file_system(lake.root, lake.options), paths, name).values())
    tx = commit.begin(table, columns)
    channels = [row[0] for row in frame.select("channel").distinct().collect()] if commit.is_bucketed(tx) else []
    written = write(lake, name, tx, frame, month, channels)
    prove(spark, lake, name, written, expected, month)
    summary = {"menzil.compact": month, "menzil.at": datetime.now(UTC).isoformat()}
    try:
        commit.finish(lake, name, tx, commit.data_files(tx, written, lake.root), {}, chosen, summary)
    except commit.CONFLICT:
        remove(lake, written)
        return None
    return len(written)
