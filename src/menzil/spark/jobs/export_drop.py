"""Let a month leave the database, once it is proved that the lake has all of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.ops import lake as ops
from menzil.ops.run import run as ask
from menzil.spark.lake import layout
from menzil.spark.lake.compare import still_there
from menzil.spark.lake.errors import LakeDamagedError
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.load import load
from menzil.spark.lake.manifest import Slice
from menzil.spark.lake.storage import Storage
from menzil.spark.lake.verify import content_problems, file_problems

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How often a month is tried that somebody reads at this moment, and how many seconds lie between.
TRIES = 5
PAUSE = 0.3


def drop_month(spark: SparkSession, conn: psycopg.Connection[Any], storage: Storage, month: str) -> str:
    """Read the published files of the month once more, then ask the database. Returns its answer. Driver.

    The database compares its rows with the fingerprint of the files, under a lock, in the transaction that drops them.
    """
    for _ in range(TRIES):
        state = load(storage)
        slices, files = state.messages.slices_of(month), state.messages.of_month(month)
        problems = file_problems(storage, files) or content_problems(spark, storage, state.messages, files)
        if not problems or load(storage).number == state.number:
            break  # else a compaction may have replaced files while they were read
    if not problems and Fingerprint.total(f.fingerprint for f in files) != _total(slices):
        problems = [f"The files of {month} do not add up to what was exported."]
    if problems:
        raise LakeDamagedError(f"{month} stays in the database: {problems[0]}")
    answer = _ask(conn, month, slices)
    if answer == "changed" and len(slices) > 1:
        # The month may have been dropped once and made again by late messages: then it has the last slices only.
        archive = ask(conn, ops.archive_fingerprint(layout.month_start(month), None, None))
        rest = still_there(slices, Fingerprint.of_archive(archive))
        if rest:
            answer = _ask(conn, month, rest)
    return answer


def _ask(conn: psycopg.Connection[Any], month: str, slices: Sequence[Slice]) -> str:
    whole = _total(slices)
    answer = "busy"
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE)
        answer = ask(conn, ops.drop_exported_month(layout.month_start(month), whole.rows, whole.sum, whole.xor))
        if answer != "busy":
            break
    return answer


def _total(slices: Sequence[Slice]) -> Fingerprint:
    return Fingerprint.total(each.fingerprint for each in slices)
