"""Retries: none after a permanent error, none beyond the budget that held when the try failed."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from menzil.spark.jobs.audit.budgets import EVERYBODY
from menzil.spark.jobs.audit.found import sentence, violations
from menzil.spark.jobs.audit.history import FAILURES


def retries(messages: DataFrame, budgets: DataFrame | None, slack: timedelta) -> DataFrame:
    """Failed tries that were followed by another try although the message should have been a dead letter."""
    failed = _failures(messages)
    permanent = violations(
        failed.where("permanent"),
        "retries",
        at=F.col("failed_at"),
        detail=sentence("tried again after try ", F.col("attempt"), ", whose error was permanent"),
    )
    if budgets is None:
        return permanent
    spent = _allowed(failed.where("not permanent"), budgets, slack).where("failures > allowed")
    return permanent.unionByName(
        violations(
            spent,
            "retries",
            at=F.col("failed_at"),
            detail=sentence(
                "tried again after ", F.col("failures"), " failures, ", F.col("allowed"), " retries were allowed"
            ),
        )
    )


def _failures(messages: DataFrame) -> DataFrame:
    def with_count(t: Column, place: Column) -> Column:
        so_far = F.filter(F.slice("tries", 1, place + 1), lambda u: u["outcome"].isin(*FAILURES))
        return F.struct(t.alias("t"), F.size(so_far).alias("failures"))

    tried = messages.where("size(tries) > 1").select("id", "channel", "tries")
    # The last try was followed by none.
    rows = F.transform(F.slice("tries", 1, F.size("tries") - 1), with_count)
    return tried.select("id", "channel", F.explode(rows).alias("r")).where(F.col("r.t.outcome").isin(*FAILURES)).select(
        "id", "channel", "r.failures", "r.t.attempt", "r.t.permanent", F.col("r.t.ended_at").alias("failed_at")
    )  # fmt: skip


def _allowed(failed: DataFrame, budgets: DataFrame, slack: timedelta) -> DataFrame:
    """Adds the largest budget that could be seen at that time; a failure without a known one drops out."""
    late = F.expr(f"interval '{slack.total_seconds():f}' second")
    held = F.broadcast(
        budgets.select(
            F.col("channel").alias("whose"), F.col("max_retries"), "since", (F.col("until") + late).alias("until")
        )
    )
    asked = failed.withColumn("whose", F.explode(F.array("channel", F.lit(EVERYBODY))))
    fits = (F.col("since").isNull() | (F.col("since") <= F.col("failed_at"))) & (
        F.col("until").isNull() | (F.col("failed_at") < F.col("until"))
    )
    answered = asked.join(held, "whose").where(fits)
    own = F.col("whose") != EVERYBODY
    mine = F.max(F.when(own, F.col("max_retries")))
    # A policy that was put aside, or says nothing about retries, leaves it to the setting.
    silent = F.max(F.when(own & F.col("max_retries").isNull(), 1))
    everybody = F.max(F.when(~own, F.col("max_retries")))
    grouped = answered.groupBy("id", "channel", "attempt", "failures", "failed_at").agg(
        mine.alias("mine"), silent.alias("silent"), everybody.alias("everybody"), F.max(own).alias("known")
    )
    allowed = (
        F.when(~F.col("known"), F.lit(None))
        .when(F.col("silent").isNull(), F.col("mine"))
        .when(F.col("everybody").isNotNull(), F.greatest("mine", "everybody"))
    )
    return grouped.withColumn("allowed", allowed).where("allowed is not null")
