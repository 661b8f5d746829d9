"""Ordering keys: one message of a key at work at a time, in the order of ids among committed messages.

A message holds its key from its first lease to its end: a retry or a defer in between does not let others pass.
The order holds from commit to commit, and the history knows when a message was created, not when it was committed. So a
message is in the wrong place only if it was surely committed and due before the one that overtook it was even sent:
by the ledger's acknowledgement where there is one, else by the slack for open transactions.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from menzil.spark.jobs.audit.found import moment, sentence, violations
from menzil.spark.jobs.audit.history import History


def keys(messages: DataFrame, history: History) -> DataFrame:
    """Violations of the kinds key-overlap and key-order: one sort per ordering key."""
    held = messages.where("ordering_key is not null and size(tries) > 0").select(
        "id",
        "channel",
        "endpoint_id",
        "ordering_key",
        "ended_at",
        "redrive_of",
        F.try_element_at("tries", F.lit(1))["leased_at"].alias("from_at"),
        F.greatest("created_at", "scheduled_at").alias("joined_at"),
    )
    held = _with_commit(held, history)
    before = (
        Window.partitionBy("endpoint_id", "ordering_key")
        .orderBy("from_at", "id")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    # A redriven message takes the place of its dead original, before those that wait: it overtakes rightly.
    could = F.when(F.col("redrive_of").isNull(), F.struct("joined_at", "id"))
    newest = F.when(F.col("redrive_of").isNull(), F.struct("id", "joined_at"))
    swept = held.select(
        "*",
        F.max(F.struct(F.col("ended_at").alias("until_at"), F.col("id").alias("id"))).over(before).alias("holder"),
        F.max(could).over(before).alias("latest"),
        F.max(newest).over(before).alias("highest"),
    )
    overlap = swept.where((F.col("holder.until_at") > F.col("from_at")) & (F.col("holder.id") != F.col("id")))
    order = swept.select("*", _overtaker().alias("overtaker")).where("overtaker is not null")
    return violations(
        overlap,
        "key-overlap",
        at=F.col("from_at"),
        other=F.col("holder.id"),
        detail=sentence(
            "leased while message ", F.col("holder.id"), " held the ordering key until ", moment("holder.until_at")
        ),
    ).unionByName(
        violations(
            order,
            "key-order",
            at=F.col("from_at"),
            other=F.col("overtaker.id"),
            detail=sentence(
                "waited for its turn when message ", F.col("overtaker.id"), " was sent, which was leased before it"
            ),
        )
    )


def _with_commit(held: DataFrame, history: History) -> DataFrame:
    """Adds surely_at: when the message was surely there for those who look for the next one."""
    slack = F.expr(f"interval '{history.commit_slack.total_seconds():f}' second")
    by_slack = F.col("joined_at") + slack
    if history.ledger is None or "acknowledged_at" not in history.ledger.columns:
        return held.withColumn("surely_at", by_slack)
    told = history.ledger.groupBy(F.col("id").cast("bigint").alias("id")).agg(F.min("acknowledged_at").alias("told_at"))
    return held.join(told, "id", "left").withColumn(
        "surely_at", F.coalesce(F.greatest("told_at", "joined_at"), by_slack)
    )


def _overtaker() -> Column:
    def passed(other: Column) -> Column:
        return (other["id"] > F.col("id")) & (other["joined_at"] >= F.col("surely_at"))

    latest, highest = F.col("latest"), F.col("highest")
    return F.when(passed(latest), F.struct(latest["id"].alias("id"))).when(
        passed(highest), F.struct(highest["id"].alias("id"))
    )
