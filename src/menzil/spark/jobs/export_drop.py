"""Let a month leave the database, once the lake is proved to have it, in a transaction that holds the lake still."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.ops import lake as ops
from menzil.ops.run import run as ask
from menzil.spark.lake import commit, layout
from menzil.spark.lake.catalog import NAME, QueueCatalog
from menzil.spark.lake.compare import still_there
from menzil.spark.lake.errors import LakeBusyError, LakeDamagedError
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.memory import Slice, cover, total
from menzil.spark.lake.read import of_month
from menzil.spark.lake.schema import MESSAGES
from menzil.spark.lake.table import Lake
from menzil.spark.lake.verify import content_problems, file_problems

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How often a month is tried that another session reads at this moment, and how many seconds lie between.
TRIES = 5
PAUSE = 0.3
#: Seconds after which no other try is made: the month was compared, and then somebody took it for longer than
#: PostgreSQL waited. The next run finds it exported, and compares it once more.
LONG = 20.0


class _MovedError(Exception):
    """Another process committed to the lake after it was read."""


def tag(month: str) -> str:
    """The name of the snapshot that was proved before a month was dropped. It never expires."""
    return f"menzil-proved-{month}"


def drop_month(spark: SparkSession, conn: psycopg.Connection[Any], lake: Lake, month: str) -> str:
    """Read the files of the month once more, tag that snapshot, then ask the database. Returns its answer. Driver.

    The database compares its rows with the fingerprint of the files, under a lock, in a transaction that also holds the
    pointer of the table: another commit meanwhile waits, and a commit before makes this prove again.
    """
    for _ in range(TRIES):
        lake.refresh(MESSAGES)
        slices = lake.memory(MESSAGES).slices(month)
        if not slices:
            return _ask(conn, lake, month, [])
        try:
            _prove(spark, lake, month)
            sealed = [replace(each, sealed=True) for each in slices]
            commit.remember(lake, MESSAGES, cover(sealed), tag=tag(month))
            return _drop(conn, lake, month, sealed)
        except (_MovedError, *commit.CONFLICT):
            continue
    raise LakeBusyError(f"Others keep committing to the lake, so {month} stays in the database.")


def _prove(spark: SparkSession, lake: Lake, month: str) -> None:
    """All that was exported of the month, value by value, in the files of this snapshot."""
    files = of_month(lake, MESSAGES, month)
    problems = file_problems(lake, files) or content_problems(spark, lake, MESSAGES, files)
    if not problems and not files and total(lake.memory(MESSAGES).slices(month)).rows:
        problems = [f"The lake has no files of {month}."]
    if problems:
        raise LakeDamagedError(f"{month} stays in the database: {problems[0]}")


def _drop(conn: psycopg.Connection[Any], lake: Lake, month: str, slices: Sequence[Slice]) -> str:
    answer = _ask(conn, lake, month, slices)
    if answer == "changed" and len(slices) > 1:
        # The month may have been dropped once and made again by late messages: then it has the last slices only.
        archive = ask(conn, ops.archive_fingerprint(layout.month_start(month), None, None))
        rest = still_there(slices, Fingerprint.of_archive(archive))
        if rest:
            answer = _ask(conn, lake, month, rest)
    return answer


def _ask(conn: psycopg.Connection[Any], lake: Lake, month: str, slices: Sequence[Slice]) -> str:
    whole = total(slices)
    answer, began = "busy", time.monotonic()
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE)
        with conn.transaction():
            if slices:
                _hold(conn, lake)
            answer = ask(conn, ops.drop_exported_month(layout.month_start(month), whole.rows, whole.sum, whole.xor))
        if answer != "busy" or time.monotonic() > began + LONG:
            break
    return answer


def _hold(conn: psycopg.Connection[Any], lake: Lake) -> None:
    """Keep the table as it was read until this transaction ends. A catalog elsewhere is only asked once more."""
    proved = lake.tables[MESSAGES].metadata_location
    if isinstance(lake.catalog, QueueCatalog):
        now = ask(conn, ops.table_pointer(NAME, *lake.identifier(MESSAGES), hold=True))
    else:
        assert lake.catalog is not None
        now = lake.catalog.load_table(lake.identifier(MESSAGES)).metadata_location
    if now != proved:
        raise _MovedError
