"""Is this the database that the lake was exported from? A lake knows by transaction ids what it has.

A dump that is restored into another server brings ids that mean nothing there, and that server gives out ids that the
lake takes for exported. Then rows would be left out without a word, so an export stops instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from menzil.ops import feed
from menzil.ops import lake as ops
from menzil.ops.run import run as ask
from menzil.spark.lake.compare import archived, counted, left_out, still_there
from menzil.spark.lake.cover import covered
from menzil.spark.lake.errors import LakeForeignError
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.memory import Memory, total
from menzil.spark.lake.original import must_not_be_a_copy
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.table import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REBUILD = "call `select menzil.rebuild()` once, which gives these rows ids of this server; then export to a new lake"


def must_be_the_same(
    spark: SparkSession, conn: psycopg.Connection[Any], dsn: str, lake: Lake, *, unknown: bool = False
) -> str:
    """Refuse a database whose new rows the lake would take for exported; else what it is called. Driver.

    Where the server, the database or the timeline is another one than at the last export (after a failover or
    pg_upgrade, which are fine), what the lake says it has is compared with the database once. Where the catalog of the
    database does not know the lake (`unknown`), the database must also have a message that the lake has.
    """
    positions = [ask(conn, feed.feed_position(name)) for name in ("archive", "event_log")]
    if any(position.foreign_rows for position in positions):
        raise LakeForeignError(
            "The history holds transaction ids of another server, so what is new in it cannot be told.",
            hint=f"it was restored from a dump; {_REBUILD}",
        )
    memories = [lake.memory(name) for name in (MESSAGES, EVENTS)]
    here = f"{ask(conn, feed.server())}/{ask(conn, feed.timeline())}"
    parts = [part for memory in memories for each in memory.all_slices() for part in each.parts]
    last, now = max((part.until for part in parts), default=0), min(position.xid for position in positions)
    if last > now:
        raise LakeForeignError(
            f"The lake has transactions up to {last} of its server, and this server has come to {now}: it was restored "
            "from a dump, or set back in time."
        )
    if parts and memories[0].source != here:
        if unknown and not _has_some(conn, memories[0]):
            raise LakeForeignError(
                "The lake was exported from another database: this one does not know it, and has no message of it.",
                hint="export to another --lake; only if this database was restored and the lake is its own, run "
                "`menzil lake register` first",
            )
        problem = _message_problem(spark, conn, dsn, lake) or _event_problem(conn, memories[1])
        if problem:
            raise LakeForeignError(f"This is not the database that the lake was exported from: {problem}")
        must_not_be_a_copy(conn, lake)
    return here


def _has_some(conn: psycopg.Connection[Any], memory: Memory) -> bool:
    """Whether the database has a message in what counts as exported."""
    found = (counted(conn, month, covered(memory.parts(month))) for month in memory.labels)
    return any(about.row_count for each in found for about in each)


def _message_problem(spark: SparkSession, conn: psycopg.Connection[Any], dsn: str, lake: Lake) -> str | None:
    """Messages in what counts as exported that the lake has not, by id and fingerprint."""
    memory = lake.memory(MESSAGES)
    for month in memory.labels:
        parts = covered(memory.parts(month))
        whole = Fingerprint.total(Fingerprint.of_archive(part) for part in archived(conn, month, parts))
        if still_there(memory.slices(month), whole) is None:
            lost = left_out(spark, dsn, lake, month, parts)
            if lost:
                return f"it has {lost:,} message{'' if lost == 1 else 's'} of {month} that the lake has not."
    return None


def _event_problem(conn: psycopg.Connection[Any], memory: Memory) -> str | None:
    """Lines of the event log are cleaned up, so only newer ones than the lake has can be told."""
    known = total(memory.slices(EVENTS)).max_id or 0
    for part in covered(memory.parts(EVENTS)):
        bounds = (str(part.start), str(part.until), part.created_from, part.created_until)
        if (ask(conn, ops.event_log_fingerprint(*bounds)).max_id or 0) > known:
            return "it has lines of the event log that the lake has not."
    return None
