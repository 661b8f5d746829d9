"""Is this the database that the lake was exported from? A lake knows by transaction ids what it has.

A dump that is restored into another server brings ids that mean nothing there, and that server gives out ids that the
lake takes for exported. Then rows would be left out without a word, so an export stops instead.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.ops import feed
from menzil.ops import lake as ops
from menzil.ops.run import run as ask
from menzil.spark.lake import schema
from menzil.spark.lake.compare import archived, still_there
from menzil.spark.lake.cover import Part, covered
from menzil.spark.lake.errors import LakeForeignError
from menzil.spark.lake.fingerprint import ROW_HASHES, Fingerprint
from menzil.spark.lake.load import load
from menzil.spark.lake.read import frame_of
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.state import State, Table
from menzil.spark.lake.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_REBUILD = "call `select menzil.rebuild()` once, which gives these rows ids of this server; then export to a new lake"


def must_be_the_same(spark: SparkSession, conn: psycopg.Connection[Any], dsn: str, storage: Storage) -> str:
    """Refuse a database whose new rows the lake would take for exported; else what it is called. Driver.

    Where the server, the database or the timeline is another one than at the last export (after a failover or
    pg_upgrade, which are fine), what the lake says it has is compared with the database once.
    """
    positions = [ask(conn, feed.feed_position(name)) for name in ("archive", "event_log")]
    if any(position.foreign_rows for position in positions):
        raise LakeForeignError(
            "The history holds transaction ids of another server, so what is new in it cannot be told.",
            hint=f"it was restored from a dump; {_REBUILD}",
        )
    state = load(storage)
    here = f"{ask(conn, feed.server())}/{ask(conn, feed.timeline())}"
    parts = [part for table in state.tables.values() for each in table.slices for part in each.parts]
    last, now = max((part.until for part in parts), default=0), min(position.xid for position in positions)
    if last > now:
        raise LakeForeignError(
            f"The lake has transactions up to {last} of its server, and this server has come to {now}: it was restored "
            "from a dump, or set back in time."
        )
    if parts and state.source != here:
        problem = _message_problem(spark, conn, dsn, storage, state) or _event_problem(conn, state.events)
        if problem:
            raise LakeForeignError(f"This is not the database that the lake was exported from: {problem}")
    return here


def _message_problem(
    spark: SparkSession, conn: psycopg.Connection[Any], dsn: str, storage: Storage, state: State
) -> str | None:
    """Messages in what counts as exported that the lake has not, by id and fingerprint."""
    table = state.messages
    for month in sorted({each.month for each in table.slices}):
        parts = covered(table.parts(month))
        whole = Fingerprint.total(Fingerprint.of_archive(part) for part in archived(conn, month, parts))
        if still_there(table.slices_of(month), whole) is None:
            lost = _left_out(spark, dsn, storage, table, month, parts)
            if lost:
                return f"it has {lost:,} message{'' if lost == 1 else 's'} of {month} that the lake has not."
    return None


def _left_out(spark: SparkSession, dsn: str, storage: Storage, table: Table, month: str, parts: list[Part]) -> int:
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    from menzil.spark.jobs.export_rows import messages_of

    def hashed(frame: DataFrame) -> DataFrame:
        return frame.select("id", F.expr(ROW_HASHES[MESSAGES]).alias("hash"))

    live = reduce(DataFrame.unionByName, [messages_of(spark, dsn, month, part) for part in parts])
    kept = frame_of(spark, storage, table.of_month(month), schema.union(table.schemas))
    return hashed(live).join(hashed(kept), ["id", "hash"], "left_anti").count()


def _event_problem(conn: psycopg.Connection[Any], table: Table) -> str | None:
    """Lines of the event log are cleaned up, so only newer ones than the lake has can be told."""
    known = Fingerprint.total(each.fingerprint for each in table.slices).max_id or 0
    for part in covered(table.parts(EVENTS)):
        bounds = (str(part.start), str(part.until), part.created_from, part.created_until)
        if (ask(conn, ops.event_log_fingerprint(*bounds)).max_id or 0) > known:
            return "it has lines of the event log that the lake has not."
    return None
