"""Delivery analytics, DataFrame -> DataFrame. All of it runs in tasks.

A message's clock starts when it was sent, or at its schedule if that is later: who waits on purpose is not slow.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from menzil.report.figures import MOST_TRIES
from menzil.report.tally import POINTS
from menzil.spark.jobs.report.causes import cause, error_class

#: Percentiles are right to a 2000th of the rank; the sketch of a group stays small.
ACCURACY = 2000


def silent() -> Column:
    """Of a row of measures: nothing was delivered of what should have been."""
    return F.expr("sent > cancelled and completed = 0")


def trouble() -> tuple[Column, ...]:
    """How endpoints are sorted: nothing delivered, most not delivered, most late, busiest (menzil.report.figures)."""
    keys = ("sent - cancelled - completed", "sent - cancelled - within", "sent")
    return (silent().desc(), *(F.expr(key).desc() for key in keys), F.asc("channel"))


def prepared(messages: DataFrame) -> DataFrame:
    """The columns that the other functions need, with latencies in seconds."""
    due = F.unix_micros(F.greatest("created_at", "scheduled_at"))

    def since_due(column: str) -> Column:
        # greatest() passes over a NULL: a message that was never leased would have waited 0 seconds.
        return F.when(F.col(column).isNotNull(), F.greatest(F.lit(0.0), (F.unix_micros(column) - due) / 1e6))

    return messages.select(
        "id",
        "channel",
        "status",
        "created_at",
        "ended_at",
        F.col("num_attempts").cast("bigint").alias("tries"),
        since_due("first_leased_at").alias("first_s"),
        F.when(F.col("status") == "completed", since_due("ended_at")).alias("delivered_s"),
        F.when(F.col("status") == "failed", F.col("last_error")).alias("error"),
    )


def measures(slo_seconds: float) -> list[Column]:
    """What is counted of any group of messages."""
    counts = [
        F.count_if(F.col("status") == status).alias(status)
        for status in ("completed", "failed", "expired", "cancelled")
    ]
    return [
        F.count("*").alias("sent"),
        *counts,
        F.count_if(F.col("tries") > 1).alias("retried"),
        F.sum("tries").alias("tries"),
        F.count_if(F.col("delivered_s") <= slo_seconds).alias("within"),
        F.percentile_approx("first_s", list(POINTS), ACCURACY).alias("first_s"),
        F.percentile_approx("delivered_s", list(POINTS), ACCURACY).alias("delivered_s"),
    ]


def bucket(width: int) -> Column:
    """The beginning, in seconds since 1970, of the bucket a message was created in."""
    return (F.floor(F.unix_seconds("created_at") / width) * width).cast("bigint").alias("bucket")


def by(frame: DataFrame, slo_seconds: float, *groups: str | Column) -> DataFrame:
    """All measures per group: by("channel"), by(bucket(3600)), by("channel", bucket(3600)); none: one row."""
    return frame.groupBy(*groups).agg(*measures(slo_seconds))


def volumes(frame: DataFrame, width: int) -> DataFrame:
    """Per endpoint and bucket: sent and completed. Cheap, for lines as small as a word."""
    return frame.groupBy("channel", bucket(width)).agg(
        F.count("*").alias("sent"), F.count_if(F.col("status") == "completed").alias("completed")
    )


def hours(frame: DataFrame) -> DataFrame:
    """Per weekday (0 is Monday) and hour, UTC whatever the session's zone is: at most 168 rows."""
    hour = F.floor(F.unix_seconds("created_at") / 3600)
    weekday = F.pmod(F.floor(hour / 24) + 3, F.lit(7))  # 1 January 1970 was a Thursday
    return frame.groupBy(weekday.cast("int").alias("weekday"), F.pmod(hour, F.lit(24)).cast("int").alias("hour")).agg(
        F.count("*").alias("sent"), F.count_if(F.col("status").isin("failed", "expired")).alias("undelivered")
    )


def retries(frame: DataFrame) -> DataFrame:
    """How many messages took how many tries, and how many of those were delivered in the end."""
    return frame.groupBy(F.least("tries", F.lit(MOST_TRIES)).alias("tries")).agg(
        F.count("*").alias("messages"),
        F.count_if(F.col("status") == "completed").alias("completed"),
        F.count_if(F.col("status") == "failed").alias("failed"),
    )


def dead_letters(frame: DataFrame) -> DataFrame:
    """Dead letters by what went wrong: how many, since when, until when, where, and one to look at."""
    dead = frame.where("status = 'failed'").withColumn("error", F.coalesce("error", F.lit("")))
    return dead.groupBy(cause("error").alias("cause"), error_class("error").alias("class")).agg(
        F.count("*").alias("messages"),
        F.min("ended_at").alias("first_at"),
        F.max("ended_at").alias("last_at"),
        F.approx_count_distinct("channel").alias("endpoints"),
        F.max_by("channel", "id").alias("channel"),
        F.max("id").alias("sample_id"),
        F.left(F.max_by("error", "id"), F.lit(500)).alias("sample"),
    )


def incidents(events: DataFrame) -> DataFrame:
    """From each opening of a circuit to its closing; a failed probe in between is the same incident."""
    turns = events.where(F.col("event_type").isin("circuit.opened", "circuit.closed", "circuit.reset")).select(
        F.col("entity_id").alias("channel"), "created_at", "id", (F.col("event_type") == "circuit.opened").alias("open")
    )
    in_order = Window.partitionBy("channel").orderBy("created_at", "id")
    probes = F.sum(F.col("open").cast("int")).over(in_order)
    turned = turns.withColumn("openings", probes).withColumn("was", F.lag("open").over(in_order))
    changed = turned.where(~F.col("was").eqNullSafe(F.col("open")))
    ended = changed.withColumn("closed_at", F.lead("created_at").over(in_order))
    times = F.lead("openings").over(in_order) - F.col("openings") + 1
    ended = ended.withColumn("openings", F.coalesce(times, F.lit(1)))
    lasted = (F.unix_micros("closed_at") - F.unix_micros("opened_at")) / 1e6
    return (
        ended.where("open")
        .select("channel", F.col("created_at").alias("opened_at"), "closed_at", "openings")
        .withColumn("seconds", lasted)
    )
