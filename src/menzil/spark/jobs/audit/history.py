"""What an audit reads: ended messages with their tries, and what else is known about the queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

#: An error that must not be retried begins so; the engine asks the same.
PERMANENT = r"^\s*\[(PERMANENT|DISABLE)\]"

TRIES = "array<struct<attempt:bigint,outcome:string,leased_at:timestamp_ltz,ended_at:timestamp_ltz,permanent:boolean>>"

#: The tries that count against the retry budget.
FAILURES = ("failed", "recovered")


@dataclass(frozen=True)
class History:
    """The frames of one audit. Only `messages` must be there; without the others some checks say that they cannot."""

    #: Columns of menzil.archive, and `attempts`: an array of structs as in the lake.
    messages: DataFrame
    #: Columns of menzil.event_log; its JSON columns are texts.
    events: DataFrame | None = None
    #: id, channel and processing_started_at of menzil.queue.
    live: DataFrame | None = None
    #: name, max_concurrency, release_interval_ms, release_count, updated_at of menzil.channels, as they are now.
    channels: DataFrame | None = None
    #: name and max_retries of the retry policies of endpoints, as they are now.
    policies: DataFrame | None = None
    #: Column id: what a sender was told is sent. With acknowledged_at the order of ordering keys is exact.
    ledger: DataFrame | None = None
    #: default_max_retries as it is now.
    max_retries: int | None = None
    #: Before `live` was read: what ended later may be in both.
    live_at: datetime | None = None
    #: The longest that a transaction which sends stays open; only the commit decides the order of an ordering key.
    commit_slack: timedelta = timedelta(seconds=60)
    #: Completed messages are archived, and always were. If not, a missing one is not a lost one.
    keeps_completed: bool = True


def slim(messages: DataFrame) -> DataFrame:
    """What the checks need of each message, without its body: a few dozen bytes. `tries` are in order."""
    return messages.select(
        "id",
        "status",
        "channel",
        "endpoint_id",
        F.col("num_attempts").cast("bigint").alias("num_attempts"),
        F.col("retry_count").cast("bigint").alias("retry_count"),
        "created_at",
        "scheduled_at",
        "expires_at",
        "leased_at",
        "ended_at",
        "ordering_key",
        "redrive_of",
        "replay_of",
        _tries(messages).alias("tries"),
    )


def _tries(messages: DataFrame) -> Column:
    given = messages.schema["attempts"].dataType
    assert isinstance(given, ArrayType), "attempts is an array of structs"

    def lean(attempt: Column) -> Column:
        return F.struct(
            attempt["attempt"].cast("bigint").alias("attempt"),
            attempt["outcome"].alias("outcome"),
            attempt["leased_at"].alias("leased_at"),
            attempt["ended_at"].alias("ended_at"),
            F.coalesce(attempt["error"].rlike(PERMANENT), F.lit(False)).alias("permanent"),
        )

    success = F.struct(
        F.col("num_attempts").cast("bigint").alias("attempt"),
        F.lit("completed").alias("outcome"),
        F.col("leased_at").alias("leased_at"),
        F.col("ended_at").alias("ended_at"),
        F.lit(False).alias("permanent"),
    )
    told = F.coalesce(F.transform("attempts", lean), F.array().cast(TRIES))
    # The engine keeps a successful try in the archive row itself; a source that already lists it is not told twice.
    unlisted = (
        (F.col("status") == "completed")
        & F.col("leased_at").isNotNull()
        & ~F.exists(told, lambda attempt: attempt["outcome"] == "completed")
    )
    return F.array_sort(F.when(unlisted, F.concat(told, F.array(success))).otherwise(told))


def leases(messages: DataFrame) -> DataFrame:
    """One row per try of slim messages: the lease from leased_at to ended_at."""
    return messages.select("id", "channel", "endpoint_id", F.explode("tries").alias("t")).select(
        "id", "channel", "endpoint_id", "t.attempt", "t.outcome", "t.leased_at", "t.ended_at"
    )
