"""Does the database have what a lake says was exported from it?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.ops import lake as ops
from menzil.ops.run import run
from menzil.spark.database import asking
from menzil.spark.lake import layout
from menzil.spark.lake.cover import Part, covered
from menzil.spark.lake.fingerprint import LEAN_EVENTS, ROW_HASHES, Fingerprint
from menzil.spark.lake.memory import Slice, total
from menzil.spark.lake.read import columns_of, data_files, frame_of, of_month
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.table import Lake

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


def archived(conn: psycopg.Connection[Any], month: str, parts: Iterable[Part]) -> list[ops.ArchiveFingerprint]:
    """What the database has of these parts of a month."""
    start = layout.month_start(month)
    return [
        run(conn, ops.archive_fingerprint(start, str(p.start), str(p.until), p.created_from, p.created_until))
        for p in parts
    ]


def counted(conn: psycopg.Connection[Any], month: str, parts: Iterable[Part]) -> list[ops.ArchiveCensus]:
    """How much the database has of these parts of a month: reads no body and hashes nothing."""
    start = layout.month_start(month)
    return [
        run(conn, ops.archive_census(start, str(p.start), str(p.until), p.created_from, p.created_until)) for p in parts
    ]


def logged(conn: psycopg.Connection[Any], parts: Iterable[Part]) -> list[Fingerprint]:
    """What the database has of these parts of its event log."""
    return [
        Fingerprint.of_events(
            run(conn, ops.event_log_fingerprint(str(p.start), str(p.until), p.created_from, p.created_until))
        )
        for p in parts
    ]


def archive_problems(lake: Lake, dsn: str, spark: SparkSession | None = None) -> list[str]:
    """Months of which the database has other messages than were exported. With Spark, erased ones are the same."""
    memory, problems = lake.memory(MESSAGES), []
    with asking(dsn, "menzil lake verify") as conn:
        for month in memory.labels:
            parts, slices = covered(memory.parts(month)), memory.slices(month)
            whole = Fingerprint.total(Fingerprint.of_archive(part) for part in archived(conn, month, parts))
            if still_there(slices, whole) is None:
                counts = {total(slices[first:]).rows for first in range(len(slices))}
                if spark is None or whole.rows not in counts or left_out(spark, dsn, lake, month, parts):
                    problems.append(f"The database has other messages of {month} than were exported.")
    return problems


def left_out(spark: SparkSession, dsn: str, lake: Lake, month: str, parts: Sequence[Part]) -> int:
    """How many messages of the database in these parts are not in the lake, by id and hash.

    One that was erased since its export has another hash, and is the same message.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    from menzil.spark.jobs.export_rows import messages_of

    same, erased = ["id", "created_at", "ended_at", "ended_xid"], F.expr("payload is null and content is null")

    def hashed(frame: DataFrame) -> DataFrame:
        return frame.select(*same, erased.alias("erased"), F.expr(ROW_HASHES[MESSAGES]).alias("hash"))

    live = reduce(DataFrame.unionByName, [messages_of(spark, dsn, month, part) for part in parts])
    kept = frame_of(
        spark, lake, [file.file_path for file in of_month(lake, MESSAGES, month)], columns_of(lake, MESSAGES)
    )
    left = hashed(live).join(hashed(kept).select("id", "hash"), ["id", "hash"], "left_anti")
    return left.join(kept.select(*same, F.lit(True).alias("erased")), [*same, "erased"], "left_anti").count()


def still_there(slices: Sequence[Slice], archive: Fingerprint) -> list[Slice] | None:
    """The slices that make up what the database has; None when none do.

    A month that was dropped and made again has only the later ones. Their tries may have been cleaned up.
    """
    for first in range(len(slices) + 1):
        rest = total(slices[first:])
        if (rest.rows, rest.sum, rest.xor) == (archive.rows, archive.sum, archive.xor):
            return list(slices[first:])
    return None


def event_problems(spark: SparkSession, lake: Lake, dsn: str) -> list[str]:
    """Lines that were exported and are not in the lake as they are in the database, which forgets the old ones."""
    from pyspark.sql import functions as F

    from menzil.spark.read import read

    slices = lake.memory(EVENTS).slices(EVENTS)
    if not any(each.lean for each in slices):
        with asking(dsn, "menzil lake verify") as conn:
            logs = Fingerprint.total(logged(conn, covered(part for each in slices for part in each.parts)))
        if logs == total(slices):  # the database has forgotten none: the files hold what its lines are
            return []
    kept = frame_of(spark, lake, [file.file_path for file in data_files(lake, EVENTS)], columns_of(lake, EVENTS))
    live, lost = read(spark, dsn, "event_log"), 0
    for lean, text in ((False, ROW_HASHES[EVENTS]), (True, LEAN_EVENTS)):
        parts = [part for each in slices if each.lean is lean for part in each.parts]
        if parts:
            hashes = F.expr(text).alias("hash")
            there = live.where(_inside(covered(parts))).select("id", hashes)
            lost += there.join(kept.select("id", hashes), ["id", "hash"], "left_anti").count()
    return [f"The lake has not {lost:,} lines of the event log as the database has them."] if lost else []


def _inside(parts: Iterable[Part]) -> Column:
    from pyspark.sql import functions as F

    inside, xid = F.lit(False), F.col("xid").cast("decimal(20,0)")
    for part in parts:
        mine = (xid >= F.lit(part.start)) & (xid < F.lit(part.until))
        if part.created_until is not None:
            mine &= F.col("created_at") < F.lit(part.created_until).cast("timestamp_ltz")
        inside |= mine
    return inside
