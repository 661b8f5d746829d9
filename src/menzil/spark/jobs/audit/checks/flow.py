"""Concurrency and rate of channels: sweeps over the leases of those that have limits.

A channel may have most of the history, so no task sweeps all of one: time is cut into slices, the sum of what came
before a slice goes in front of it, and every slice is swept by itself.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from menzil.spark.jobs.audit.found import sentence, violations
from menzil.spark.jobs.audit.limits import at_time

MICROSECONDS = 1000

#: Seconds of a slice. What one task sorts is what a channel does in this time.
SLICE = 60


def running(steps: DataFrame, value: str) -> DataFrame:
    """Adds `total`, the sum of `value` over the steps of an endpoint so far: by `at`, then `value`, then `id`."""
    cut = steps.withColumn("slice", F.floor(F.unix_seconds("at") / SLICE))
    sums = cut.groupBy("endpoint_id", "slice").agg(F.sum(value).alias("moved"))
    earlier = Window.partitionBy("endpoint_id").orderBy("slice").rowsBetween(Window.unboundedPreceding, -1)
    carried = sums.select("endpoint_id", "slice", F.coalesce(F.sum("moved").over(earlier), F.lit(0)).alias(value))
    in_order = (
        Window.partitionBy("endpoint_id", "slice")
        .orderBy(F.asc_nulls_first("at"), value, "id")  # what is carried has no time, and comes first
        .rowsBetween(Window.unboundedPreceding, 0)
    )
    swept = cut.unionByName(carried, allowMissingColumns=True).withColumn("total", F.sum(value).over(in_order))
    return swept.where("at is not null").drop("slice")


def concurrency(leases: DataFrame, spans: DataFrame, live: DataFrame | None) -> DataFrame:
    """Leases granted although the channel was full.

    Only grants are judged: a limit that is lowered does not take back what is in flight. A lease that ends in the very
    microsecond of another's grant makes room for it.
    """
    limited = F.broadcast(spans.where("max_concurrency is not null").select("channel").distinct())
    leases = leases.select("id", "channel", "endpoint_id", "leased_at", "ended_at").join(
        limited, "channel", "left_semi"
    )
    if live is not None:
        begun = live.where("processing_started_at is not null").join(limited, "channel", "left_semi")
        ids = leases.groupBy("channel").agg(F.max("endpoint_id").alias("endpoint_id"))
        leases = leases.unionByName(
            begun.join(ids, "channel").select(
                F.col("id").cast("bigint").alias("id"), "channel", "endpoint_id",
                F.col("processing_started_at").alias("leased_at"), F.lit(None).cast("timestamp_ltz").alias("ended_at"),
            )
        )  # fmt: skip
    steps = leases.select(
        "id", "channel", "endpoint_id", "leased_at",
        F.explode(F.array(
            F.struct(F.col("leased_at").alias("at"), F.lit(1).cast("bigint").alias("step")),
            F.struct(F.col("ended_at").alias("at"), F.lit(-1).cast("bigint").alias("step")),
        )).alias("s"),
    ).select("id", "channel", "endpoint_id", "leased_at", "s.at", "s.step").where("at is not null")  # fmt: skip
    swept = running(steps, "step").where("step = 1").withColumnRenamed("total", "in_flight")
    full = at_time(swept, spans).where("in_flight > max_concurrency")
    return violations(
        full,
        "concurrency",
        at=F.col("leased_at"),
        detail=sentence(F.col("in_flight"), " in flight with this one, the limit was ", F.col("max_concurrency")),
    )


def rate(leases: DataFrame, spans: DataFrame) -> DataFrame:
    """Leases that came too soon after the one `release_count` places before: the windows slide, none is too full."""
    rated = F.broadcast(spans.where("release_interval_ms > 0").select("channel").distinct())
    granted = leases.select("id", "channel", "endpoint_id", "leased_at").join(rated, "channel", "left_semi")
    counted = granted.withColumns({"at": F.col("leased_at"), "one": F.lit(1).cast("bigint")})
    numbered = running(counted, "one").select("id", "channel", "endpoint_id", "leased_at", F.col("total").alias("n"))
    judged = at_time(numbered, spans.where("release_interval_ms > 0")).withColumn(
        "n_before", F.expr("n - release_count")
    )
    before = numbered.select(
        "endpoint_id",
        F.col("n").alias("n_before"),
        F.col("leased_at").alias("before_at"),
        F.col("id").alias("before_id"),
    )
    apart = F.unix_micros("leased_at") - F.unix_micros("before_at")
    over = judged.join(before, ["endpoint_id", "n_before"]).where(
        (apart < F.col("release_interval_ms") * MICROSECONDS) & (F.col("before_at") >= F.col("rate_since"))
    )
    return violations(
        over,
        "rate",
        at=F.col("leased_at"),
        other=F.col("before_id"),
        detail=sentence(
            "number ", F.col("release_count") + 1, " within ", F.round(apart / MICROSECONDS, 3), " ms, the limit was ",
            F.col("release_count"), " in ", F.col("release_interval_ms"), " ms",
        ),
    )  # fmt: skip
