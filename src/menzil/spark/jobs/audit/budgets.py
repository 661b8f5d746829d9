"""Which retry budget held when: of each channel's own policy, and of the channels without one."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

#: The channel that stands for all without a policy of their own. No channel is called so: names are not empty.
EVERYBODY = ""


def budgets(events: DataFrame | None, max_retries: int | None, policies: DataFrame | None) -> DataFrame | None:
    """channel, since (null: always), until (null: still), max_retries (null: the setting decides).

    A channel without a line here has an unknown policy: it was set before the log begins.
    """
    if events is None:
        return None
    own = _timeline(
        events.where("event_type = 'retry_policy.changed'").select(
            F.col("entity_id").alias("channel"),
            "created_at",
            "id",
            F.get_json_object("old_value", "$.max_retries").cast("bigint").alias("before"),
            F.get_json_object("new_value", "$.max_retries").cast("bigint").alias("after"),
        )
    )
    setting = events.where("event_type = 'setting.changed' and entity_id = 'default_max_retries'").select(
        F.lit(EVERYBODY).alias("channel"),
        "created_at",
        "id",
        F.regexp_extract("old_value", "[0-9]+", 0).cast("bigint").alias("before"),
        F.regexp_extract("new_value", "[0-9]+", 0).cast("bigint").alias("after"),
    )
    frame = own.unionByName(_timeline(setting)).unionByName(_unchanged(events, policies))
    if max_retries is None:
        return frame
    # A setting that was never changed has always been what it is.
    never = setting.agg(F.count("*").alias("changes")).where("changes = 0")
    since = F.lit(None).cast("timestamp_ltz")
    return frame.unionByName(
        never.select(
            F.lit(EVERYBODY).alias("channel"), since.alias("since"), since.alias("until"),
            F.lit(max_retries).cast("bigint").alias("max_retries"),
        )
    )  # fmt: skip


def _unchanged(events: DataFrame, policies: DataFrame | None) -> DataFrame:
    """Channels whose policy never changed in the log: what it is now, or none if the log saw how they were made."""
    made = events.where(F.col("event_type").isin("channel.created", "endpoint.created")).select(
        F.col("entity_id").alias("channel"), F.lit(None).cast("bigint").alias("max_retries")
    )
    if policies is not None:
        made = made.unionByName(policies.select(F.col("name").alias("channel"), F.col("max_retries").cast("bigint")))
    changed = events.where("event_type = 'retry_policy.changed'").select(F.col("entity_id").alias("channel")).distinct()
    always = F.lit(None).cast("timestamp_ltz")
    silent = (
        made.groupBy("channel").agg(F.max("max_retries").alias("max_retries")).join(changed, "channel", "left_anti")
    )
    return silent.select("channel", always.alias("since"), always.alias("until"), "max_retries")


def _timeline(changes: DataFrame) -> DataFrame:
    by_time = Window.partitionBy("channel").orderBy("created_at", "id")
    numbered = changes.withColumn("n", F.row_number().over(by_time)).withColumn(
        "next_at", F.lead("created_at").over(by_time)
    )
    after = numbered.select(
        "channel",
        F.col("created_at").alias("since"),
        F.col("next_at").alias("until"),
        F.col("after").alias("max_retries"),
    )
    before = numbered.where("n = 1").select(
        "channel",
        F.lit(None).cast("timestamp_ltz").alias("since"),
        F.col("created_at").alias("until"),
        F.col("before").alias("max_retries"),
    )
    return before.unionByName(after)
