"""Which limits held when: read from the event log, completed by what holds now.

A change of limits waits for every dequeue that is half way and is logged behind it, so the time of its event parts the
leases exactly. A retry budget is read without any lock: for the slack of open transactions the old one is fine too.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

FIELDS = ("max_concurrency", "release_interval_ms", "release_count")


def _number(column: str, name: str) -> Column:
    return F.get_json_object(column, f"$.{name}").cast("bigint").alias(name)


def limits(events: DataFrame | None, channels: DataFrame | None) -> DataFrame | None:
    """channel, since, until (null: still), the limits, and since when its rate has counted; None: nothing is known."""
    if events is None and channels is None:
        return None
    parts = []
    if events is not None:
        told = events.where(F.col("event_type").isin("channel.created", "channel.changed"))
        parts.append(_told(told, "new_value").withColumn("since", F.col("created_at")))
        # Before its first change a channel had what that change replaced, at least as far back as the log goes.
        first = told.withColumn("n", F.row_number().over(Window.partitionBy("entity_id").orderBy("created_at", "id")))
        first = first.where("n = 1 and old_value is not null").crossJoin(F.broadcast(_floor(events)))
        parts.append(_told(first, "old_value", "floor").withColumn("since", F.col("floor")).drop("floor"))
    if channels is not None:
        parts.append(_current(channels, events))
    frame = parts[0].select("channel", "since", *FIELDS)
    for part in parts[1:]:
        frame = frame.unionByName(part.select("channel", "since", *FIELDS))
    return _spans(frame)


def _told(events: DataFrame, value: str, *more: str) -> DataFrame:
    return events.select(
        F.col("entity_id").alias("channel"), "created_at", *more, *(_number(value, name) for name in FIELDS)
    )


def _floor(events: DataFrame) -> DataFrame:
    return events.agg(F.min("created_at").alias("floor"))


def _current(channels: DataFrame, events: DataFrame | None) -> DataFrame:
    """Channels that the log says nothing about have had what they have since the log begins, or their last change."""
    now = channels.select(
        F.col("name").alias("channel"), "updated_at", *(F.col(name).cast("bigint").alias(name) for name in FIELDS)
    )
    if events is None:
        return now.withColumn("since", F.col("updated_at"))
    told = events.where(F.col("event_type").isin("channel.created", "channel.changed"))
    silent = now.join(told.select(F.col("entity_id").alias("channel")).distinct(), "channel", "left_anti")
    return silent.crossJoin(F.broadcast(_floor(events))).withColumn("since", F.least("floor", "updated_at"))


def _spans(frame: DataFrame) -> DataFrame:
    by_time = Window.partitionBy("channel").orderBy("since")
    # A rate counts from when it was put on, and a longer interval does not look back further than the shorter one did.
    changed = ~F.col("release_interval_ms").eqNullSafe(F.lag("release_interval_ms").over(by_time))
    marked = frame.withColumn("until", F.lead("since").over(by_time)).withColumn("changed", changed)
    rated = F.last(F.when(F.col("changed"), F.col("since")), ignorenulls=True).over(by_time)
    return marked.select("channel", "since", "until", *FIELDS, rated.alias("rate_since"))


def at_time(leases: DataFrame, spans: DataFrame) -> DataFrame:
    """Leases with the limits that held when they were granted; those without known limits drop out."""
    held = F.broadcast(spans).alias("held")
    granted = leases.alias("granted")
    within = (
        (F.col("granted.channel") == F.col("held.channel"))
        & (F.col("granted.leased_at") >= F.col("held.since"))
        & (F.col("held.until").isNull() | (F.col("granted.leased_at") < F.col("held.until")))
    )
    return granted.join(held, within).select(
        "granted.*", "held.since", "held.rate_since", *(f"held.{f}" for f in FIELDS)
    )
