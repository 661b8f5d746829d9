"""Compaction: many small files of a partition become few large ones, by the same door as everything else."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from menzil.spark.lake import layout, schema
from menzil.spark.lake.errors import LakeBusyError, LakeDamagedError
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.manifest import File, State
from menzil.spark.lake.publish import finish, load, recover, sweep
from menzil.spark.lake.read import frame_of
from menzil.spark.lake.storage import Storage, open_storage
from menzil.spark.lake.verify import file_problems
from menzil.spark.lake.write import ready, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A file that is smaller than this is small.
SMALL = 64 << 20
#: How long readers that began before may go on reading the files that were replaced.
GRACE = timedelta(hours=1)


@dataclass(frozen=True)
class CompactReport:
    """How many files became how many, and how many old ones were removed."""

    before: int
    after: int
    removed: int


def compact(
    spark: SparkSession,
    lake: str | os.PathLike[str],
    month: str | None = None,
    *,
    small: int = SMALL,
    grace: timedelta = GRACE,
) -> CompactReport:
    """Rewrite the small files of a month, or of all. Readers see the old files or the new ones, never both. Driver.

    The new files are verified against the manifests before they count. Rows exported meanwhile are not touched.
    """
    storage = open_storage(lake, spark)
    recover(storage)
    state = load(storage)
    run = f"compact-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    before = after = 0
    for each in sorted({file.month for file in state.of_month(month)}):
        chosen = _small(state.of_month(each), small)
        if chosen:
            before += len(chosen)
            after += _rewrite(spark, storage, state, run, each, chosen)
    return CompactReport(before, after, sweep(storage, grace))


def _small(files: list[File], small: int) -> list[File]:
    """Small files that have a small neighbour."""
    by_endpoint = defaultdict(list)
    for file in files:
        if file.size < small:
            by_endpoint[file.endpoint].append(file)
    return [file for neighbours in by_endpoint.values() if len(neighbours) > 1 for file in neighbours]


def _rewrite(spark: SparkSession, storage: Storage, state: State, run: str, month: str, chosen: list[File]) -> int:
    problems = file_problems(storage, chosen)
    if problems:
        raise LakeDamagedError(problems[0])
    columns = schema.union(state.schemas)
    place = layout.work(run, month)
    write(storage, frame_of(spark, storage, chosen, columns).drop("year", "month"), place)
    expected = Fingerprint.total(file.fingerprint for file in chosen)
    replaces = tuple(file.path for file in chosen)
    _, files = ready(spark, storage, "compact", run, month, expected, replaces=replaces, columns=columns)
    if not finish(storage, place):
        raise LakeBusyError(f"Somebody else rewrote the files of {month}.")
    return len(files)
