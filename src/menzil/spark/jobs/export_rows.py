"""The rows of an export: messages of the archive with all their tries, as they will lie in the lake."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from typing import Any

import psycopg
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from menzil.ops.lake import ArchiveFingerprint, failed_attempt_bytes
from menzil.ops.run import run as ask
from menzil.spark.lake import layout
from menzil.spark.lake.cover import Part, moment
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.promote import Promoted, values
from menzil.spark.lake.schema import COLUMNS
from menzil.spark.read import read
from menzil.spark.source.relations import in_ddl

#: Tries that did not succeed, up to so many bytes, are sent to every task instead of sorting all messages by id. They
#: pass through the driver, each with an error of up to 8 KB and what is around it.
BROADCAST, AROUND = 32 << 20, 200

_ATTEMPTS = in_ddl(COLUMNS["attempts"])
_TRY = ("attempt", "outcome", "leased_at", "ended_at", "worker", "error", "status_code", "duration_ms")

# The try that succeeded is the message itself; this is how the view attempts shows it. The fingerprint proves it.
_SUCCESS = """
named_struct(
  'attempt', num_attempts, 'outcome', 'completed', 'leased_at', leased_at, 'ended_at', ended_at, 'worker', worker,
  'error', cast(null as string), 'status_code', success_status, 'duration_ms', success_ms)"""


def rows(
    spark: SparkSession,
    conn: psycopg.Connection[Any],
    dsn: str,
    month: str,
    parts: Sequence[Part],
    archive: Sequence[ArchiveFingerprint],
    promotions: Sequence[Promoted] = (),
) -> DataFrame:
    """Messages of the month that are in these parts, of which the database said this. Driver; reads no message yet."""
    messages = reduce(DataFrame.unionByName, [messages_of(spark, dsn, month, part) for part in parts])
    none = F.array().cast(_ATTEMPTS)
    frame = messages.withColumn("failed", none)
    if any(each.failed_attempt_count for each in archive):
        low = min(each.min_id for each in archive if each.min_id is not None)
        high = max(each.max_id for each in archive if each.max_id is not None)
        tries = _failed(spark, dsn, month, low, high)
        frame = messages.join(F.broadcast(tries) if few(conn, month, low, high) else tries, "id", "left")
    success = F.expr(f"case when status = 'completed' then array({_SUCCESS}) else array() end")
    every = F.concat(F.coalesce("failed", none), success.cast(_ATTEMPTS))
    columns = [F.col(name) for name in COLUMNS if name != "attempts"]
    return frame.select(*columns, every.alias("attempts"), *values(promotions))


def messages_of(spark: SparkSession, dsn: str, month: str, part: Part) -> DataFrame:
    """Messages of the month that are in this part, without their tries."""
    # A snapshot in which all below `until` is over and nothing else has begun is the upper bound in other words.
    options: dict[str, Any] = {"snapshot": f"{part.until}:{part.until}:"}
    if part.start:  # the index of ends leads to what is new
        options["endedFrom"] = part.start
    elif part.created_from:  # and that of times, which does not like to be asked for blocks as well
        options["numPartitions"] = 1
    columns = [*(name for name in COLUMNS if name != "attempts"), "success_status", "success_ms"]
    frame = read(spark, dsn, "archive", columns=columns, **options)
    first = max(moment(layout.month_start(month)), part.created_from or "")
    end = min(moment(layout.month_end(month)), part.created_until or "~")
    return frame.where((F.col("created_at") >= _time(first)) & (F.col("created_at") < _time(end)))


def few(conn: psycopg.Connection[Any], month: str, low: int, high: int) -> bool:
    """Whether the tries that are read fit into what is sent to every task: of all messages with ids in between."""
    most = BROADCAST // AROUND + 1
    return ask(conn, failed_attempt_bytes(low, high, layout.month_start(month), AROUND, most)) <= BROADCAST


def _failed(spark: SparkSession, dsn: str, month: str, low: int, high: int) -> DataFrame:
    """Tries that did not succeed, in order, by message. One is not older than its message."""
    tries = read(spark, dsn, "attempts", columns=["message_id", *_TRY])
    tries = tries.where(F.col("message_id").between(low, high))
    tries = tries.where(
        (F.col("outcome") != "completed") & (F.col("ended_at") >= _time(moment(layout.month_start(month))))
    )
    in_order = F.array_sort(F.collect_list(F.struct(*_TRY))).cast(_ATTEMPTS)
    return tries.groupBy(F.col("message_id").alias("id")).agg(in_order.alias("failed"))


def event_rows(spark: SparkSession, dsn: str, parts: Sequence[Part], expected: Fingerprint) -> DataFrame:
    """Lines of the event log in these parts. Driver; reads nothing yet."""
    frame = read(spark, dsn, "event_log").where(F.col("id").between(F.lit(expected.min_id), F.lit(expected.max_id)))
    xid, at = F.col("xid").cast("decimal(20,0)"), F.col("created_at")
    inside = F.lit(False)
    for part in parts:
        mine = (xid >= F.lit(part.start)) & (xid < F.lit(part.until))
        mine = mine & (at >= _time(part.created_from)) if part.created_from else mine
        inside |= mine & (at < _time(part.created_until)) if part.created_until else mine
    return frame.where(inside)


def _time(text: str) -> Column:
    return F.lit(datetime.fromisoformat(text))
