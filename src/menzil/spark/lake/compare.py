"""Does the database have what a lake says was exported from it?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.ops import lake as ops
from menzil.ops.dsn import understood
from menzil.ops.run import run
from menzil.spark.lake import layout, schema
from menzil.spark.lake.cover import Part, covered
from menzil.spark.lake.fingerprint import ROW_HASHES, Fingerprint
from menzil.spark.lake.manifest import Slice
from menzil.spark.lake.read import frame_of
from menzil.spark.lake.schema import EVENTS
from menzil.spark.lake.state import Table
from menzil.spark.lake.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def archived(conn: psycopg.Connection[Any], month: str, parts: Iterable[Part]) -> list[ops.ArchiveFingerprint]:
    """What the database has of these parts of a month."""
    start = layout.month_start(month)
    return [
        run(conn, ops.archive_fingerprint(start, str(p.start), str(p.until), p.created_from, p.created_until))
        for p in parts
    ]


def archive_problems(table: Table, dsn: str) -> list[str]:
    """Months of which the database has other messages than were exported."""
    problems = []
    with psycopg.connect(understood(dsn), autocommit=True, application_name="menzil lake verify") as conn:
        for month in sorted({each.month for each in table.slices}):
            there = archived(conn, month, covered(table.parts(month)))
            whole = Fingerprint.total(Fingerprint.of_archive(part) for part in there)
            if still_there(table.slices_of(month), whole) is None:
                problems.append(f"The database has other messages of {month} than were exported.")
    return problems


def still_there(slices: Sequence[Slice], archive: Fingerprint) -> list[Slice] | None:
    """The slices that make up what the database has; None when none do.

    A month that was dropped and made again has only the later ones. Their tries may have been cleaned up.
    """
    for first in range(len(slices) + 1):
        rest = Fingerprint.total(each.fingerprint for each in slices[first:])
        if (rest.rows, rest.sum, rest.xor) == (archive.rows, archive.sum, archive.xor):
            return list(slices[first:])
    return None


def event_problems(spark: SparkSession, storage: Storage, table: Table, dsn: str) -> list[str]:
    """Lines that were exported and are not in the lake as they are in the database, which forgets the old ones."""
    from pyspark.sql import functions as F

    from menzil.spark.read import read

    if not table.slices:
        return []
    live = read(spark, dsn, "event_log")
    inside = F.lit(False)
    for part in covered(table.parts(EVENTS)):
        xid = F.col("xid").cast("decimal(20,0)")
        mine = (xid >= F.lit(part.start)) & (xid < F.lit(part.until))
        if part.created_until is not None:
            mine &= F.col("created_at") < F.lit(part.created_until).cast("timestamp")
        inside |= mine
    kept = frame_of(spark, storage, list(table.files.values()), schema.union(table.schemas, EVENTS), EVENTS)
    hashes = F.expr(ROW_HASHES[EVENTS]).alias("hash")
    lost = live.where(inside).select("id", hashes).join(kept.select("id", hashes), ["id", "hash"], "left_anti").count()
    return [f"The lake has not {lost:,} lines of the event log as the database has them."] if lost else []
