"""Compaction: many small files of a partition become few large ones, by the same door as everything else."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from menzil.spark.lake import layout, schema
from menzil.spark.lake.errors import LakeBusyError, LakeDamagedError
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.load import load
from menzil.spark.lake.manifest import File, Manifest
from menzil.spark.lake.publish import finish, now, recover, sweep
from menzil.spark.lake.read import frame_of
from menzil.spark.lake.schema import EVENTS
from menzil.spark.lake.state import Table
from menzil.spark.lake.storage import Storage, open_storage
from menzil.spark.lake.verify import file_problems
from menzil.spark.lake.write import ready, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A file that is smaller than this is small.
SMALL = 64 << 20


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
    grace: timedelta = timedelta(0),
) -> CompactReport:
    """Rewrite the small files of a month, or of all. Whoever reads by the manifests sees the old or the new. Driver.

    The new files are verified against the manifests before they count. Rows exported meanwhile are not touched. The old
    files leave as soon as the new ones count, since whoever reads the directories would see both; with `grace` they
    stay for that long, for readers by the manifests that began before.
    """
    storage = open_storage(lake, spark)
    recover(storage)
    state = load(storage)
    run = f"compact-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    before = after = 0
    for name, table in state.tables.items():
        for each in sorted({file.month for file in table.of_month(month)}):
            chosen = _small(table.of_month(each), small)
            if chosen:
                before += len(chosen)
                step = Manifest("compact", f"{run}-{name}", each, now(), table=name, keep_seconds=grace.total_seconds())
                after += _rewrite(spark, storage, step, table, chosen)
    removed = before if not grace else 0
    return CompactReport(before, after, removed + sweep(storage))


def _small(files: list[File], small: int) -> list[File]:
    """Small files that have a small neighbour."""
    by_endpoint = defaultdict(list)
    for file in files:
        if file.size < small:
            by_endpoint[file.endpoint].append(file)
    return [file for neighbours in by_endpoint.values() if len(neighbours) > 1 for file in neighbours]


def _rewrite(spark: SparkSession, storage: Storage, step: Manifest, table: Table, chosen: list[File]) -> int:
    from pyspark.sql import functions as F

    assert step.month is not None
    problems = file_problems(storage, chosen)
    if problems:
        raise LakeDamagedError(problems[0])
    columns = schema.union(table.schemas, step.table)
    place = layout.work(step.run, step.month)
    frame = frame_of(spark, storage, chosen, columns, step.table).drop("year", "month")
    if step.table == EVENTS:
        frame = frame.withColumn("label", F.lit(step.month))
    write(storage, frame, place, step.table)
    expected = Fingerprint.total(file.fingerprint for file in chosen)
    step = replace(step, replaces=tuple(file.path for file in chosen), columns=columns)
    files = ready(spark, storage, place, step, expected)
    if not finish(storage, place):
        raise LakeBusyError(f"Somebody else rewrote the files of {step.month}.")
    return len(files)
