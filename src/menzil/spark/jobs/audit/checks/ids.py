"""Every message is there, once, and ended once."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from menzil.spark.jobs.audit.found import moment, sentence, violations
from menzil.spark.jobs.audit.history import History


def ends(messages: DataFrame) -> DataFrame:
    """An id that the history has more than once: a copy of the same end, or another end."""
    seen = (
        messages.groupBy("id")
        .agg(
            F.count("*").alias("rows"),
            F.first("channel").alias("channel"),
            F.max("ended_at").alias("at"),
            F.array_sort(F.collect_set(F.concat_ws(" at ", "status", moment("ended_at")))).alias("ends"),
        )
        .where("rows > 1")
    )
    return violations(
        seen,
        F.when(F.size("ends") > 1, "two-ends").otherwise("twice"),
        at=F.col("at"),
        detail=sentence(F.col("rows"), " rows: ", F.array_join(F.slice("ends", 1, 5), ", ")),
    )


def risen(messages: DataFrame, history: History) -> DataFrame | None:
    """Ended and yet in the queue. What ended after the queue was looked at may be in both."""
    if history.live is None:
        return None
    ended = messages if history.live_at is None else messages.where(F.col("ended_at") < F.lit(history.live_at))
    both = ended.select("id", "channel", "status", "ended_at").join(history.live.select("id"), "id")
    return violations(
        both,
        "ended-and-live",
        at=F.col("ended_at"),
        detail=sentence("ended as ", F.col("status"), " and is in the queue"),
    )


def lost(messages: DataFrame, history: History) -> DataFrame | None:
    """Acknowledged to a sender, and nowhere. Only a ledger can tell: a rolled back send leaves a gap in the ids too."""
    if history.ledger is None or not history.keeps_completed:
        return None
    known = messages.select("id")
    if history.live is not None:
        known = known.union(history.live.select("id"))
    gone = history.ledger.select(F.col("id").cast("bigint").alias("id")).distinct().join(known, "id", "left_anti")
    return violations(
        gone.withColumn("channel", F.lit(None).cast("string")),
        "lost",
        at=F.lit(None),
        detail=F.lit("acknowledged, but neither in the queue nor in the history"),
    )


def origins(messages: DataFrame, history: History) -> DataFrame:
    """Redriven and replayed messages name an original that is known and older than they are.

    An original older than the oldest message of this history went with its month: that is no violation.
    """
    copies = messages.select("id", "channel", "created_at", F.coalesce("redrive_of", "replay_of").alias("origin"))
    copies = copies.where("origin is not null")
    oldest = messages.agg(F.min("id").alias("oldest"))
    known = messages.select(F.col("id").alias("origin"))
    if history.live is not None:  # a replay of something live cannot be, but then the complaint is another one
        known = known.union(history.live.select(F.col("id").alias("origin")))
    unknown = (
        copies.where("origin < id")
        .join(known, "origin", "left_anti")
        .crossJoin(F.broadcast(oldest))
        .where("origin > oldest")
    )
    backwards = copies.where("origin >= id")
    told = violations(
        unknown,
        "origin",
        at=F.col("created_at"),
        other=F.col("origin"),
        detail=sentence("its original ", F.col("origin"), " is not known"),
    )
    return told.unionByName(
        violations(
            backwards,
            "origin",
            at=F.col("created_at"),
            other=F.col("origin"),
            detail=sentence("its original ", F.col("origin"), " is not older than itself"),
        )
    )
