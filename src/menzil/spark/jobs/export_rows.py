"""The rows of an export: messages of the archive with all their tries, as they will lie in the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from menzil.spark.lake import layout
from menzil.spark.lake.schema import COLUMNS
from menzil.spark.read import read

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Tries that did not succeed, up to this many, are sent to every task instead of sorting all messages by id.
BROADCAST = 300_000

_TRY = ("attempt", "outcome", "leased_at", "ended_at", "worker", "error", "status_code", "duration_ms")

# The try that succeeded is the message itself; this is how the view attempts shows it. The fingerprint proves it.
_SUCCESS = r"""
named_struct(
  'attempt', num_attempts, 'outcome', 'completed', 'leased_at', leased_at, 'ended_at', ended_at, 'worker', worker,
  'error', cast(null as string),
  'status_code', case when get_json_object(response, '$.status') rlike '^[0-9]{1,9}\\z'
                      then cast(get_json_object(response, '$.status') as int) end,
  'duration_ms', coalesce(from_json(response, 'duration_ms double').duration_ms,
                          cast(unix_micros(ended_at) - unix_micros(leased_at) as double) / 1000D))"""

# As layout.directory() says it.
_DIRECTORY = r"""
case when channel rlike '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\\z' then channel
     else concat(substr(regexp_replace(channel, '[^A-Za-z0-9._-]', '_'), 1, 60), '-',
                 substr(md5(cast(channel as binary)), 1, 12)) end"""


def rows(spark: SparkSession, dsn: str, month: str, start: int, until: int, failed_attempts: int) -> DataFrame:
    """Messages of the month that ended in transactions from `start` to before `until`. Driver; reads nothing yet."""
    from pyspark.sql import functions as F

    first, end = F.lit(layout.month_start(month)), F.lit(layout.month_end(month))
    # A snapshot in which all below `until` is over and nothing else has begun is the upper bound in other words.
    archive = read(spark, dsn, "archive", snapshot=f"{until}:{until}:", endedFrom=start)
    archive = archive.where((F.col("created_at") >= first) & (F.col("created_at") < end))
    archive = archive.where(F.col("ended_xid").cast("decimal(20,0)") >= F.lit(start))
    frame = archive.withColumn("failed", F.array().cast(COLUMNS["attempts"]))
    if failed_attempts:
        tries = _failed(spark, dsn, first)
        frame = archive.join(F.broadcast(tries) if failed_attempts <= BROADCAST else tries, "id", "left")
    success = F.expr(f"case when status = 'completed' then array({_SUCCESS}) else array() end")
    every = F.concat(F.coalesce("failed", F.array().cast(COLUMNS["attempts"])), success.cast(COLUMNS["attempts"]))
    columns = [F.col(name) for name in COLUMNS if name != "attempts"]
    return frame.select(*columns, every.alias("attempts"), F.expr(_DIRECTORY).alias("endpoint"))


def _failed(spark: SparkSession, dsn: str, first: Column) -> DataFrame:
    """Tries that did not succeed, in order, by message. One is not older than its message."""
    from pyspark.sql import functions as F

    tries = read(spark, dsn, "attempts", columns=["message_id", *_TRY])
    tries = tries.where((F.col("outcome") != "completed") & (F.col("ended_at") >= first))
    in_order = F.array_sort(F.collect_list(F.struct(*_TRY))).cast(COLUMNS["attempts"])
    return tries.groupBy(F.col("message_id").alias("id")).agg(in_order.alias("failed"))
