"""A history without the engine: clean by construction, of any size, the same for the same seed, made by Spark itself.

Message i goes to channel i % CHANNELS as number s = i // CHANNELS, a second after the one before. Its tries take place
at fixed offsets: never more than four leases at once, and over before the next of its ordering key (s % 7) comes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

CHANNELS = 8
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
LIMIT, RATE_MS, RATE_COUNT, MAX_RETRIES = 4, 10_000, 40, 2

#: What happens to a message, by a number from 0 to 999: (up to, fate)
FATES = ((860, "first"), (930, "second"), (950, "deferred"), (960, "recovered"), (975, "dead"), (985, "permanent"),
         (990, "expired"), (995, "cancelled"), (1000, "later"))  # fmt: skip

Try = tuple[str, int, int, str | None]

#: The tries of each fate: outcome, leased and ended in milliseconds after creation, error.
TRIES: dict[str, list[Try]] = {
    "first": [("completed", 200, 900, None)],
    "second": [("failed", 200, 300, "[RETRYABLE] HTTP 503 from 10.0.0.7"), ("completed", 2200, 2500, None)],
    "deferred": [("deferred", 200, 300, None), ("completed", 2200, 2500, None)],
    "recovered": [("recovered", 200, 1100, "[RETRYABLE] The lease expired before the message was settled."),
                  ("completed", 2200, 2500, None)],
    "dead": [("failed", 200, 300, "[RETRYABLE] HTTP 500 in 31 ms"),
             ("failed", 2200, 2300, "[RETRYABLE] HTTP 500 in 29 ms"),
             ("failed", 4200, 4300, "[RETRYABLE] HTTP 500 in 30 ms")],
    "permanent": [("failed", 200, 300, "[PERMANENT] HTTP 410")],
    "expired": [], "cancelled": [],
    "later": [("completed", 3200, 3600, None)],
}  # fmt: skip
STATUS = {"dead": "failed", "permanent": "failed", "expired": "expired", "cancelled": "cancelled"}
ATTEMPTS = (
    "array<struct<attempt:bigint,outcome:string,leased_at:timestamp,ended_at:timestamp,worker:string,error:string,"
    "status_code:int,duration_ms:double>>"
)


def fate_of(number: Column, seed: int) -> Column:
    dice = F.pmod(F.xxhash64(number, F.lit(seed)), F.lit(1000))
    told = F.when(dice < FATES[0][0], FATES[0][1])
    for upto, fate in FATES[1:]:
        told = told.when(dice < upto, fate)
    return told


def _by_fate(values: dict[str, Column]) -> Column:
    told = None
    for fate, value in values.items():
        hit = F.col("fate") == fate
        told = F.when(hit, value) if told is None else told.when(hit, value)
    assert told is not None
    return told


def _after(milliseconds: int) -> Column:
    return F.timestamp_micros(F.col("born") + milliseconds * 1000)


def _tries(fate: str) -> Column:
    rows = [
        F.struct(
            F.lit(n).cast("bigint").alias("attempt"), F.lit(outcome).alias("outcome"),
            _after(leased).alias("leased_at"), _after(ended).alias("ended_at"), F.lit("w1").alias("worker"),
            F.lit(error).cast("string").alias("error"), F.lit(None).cast("int").alias("status_code"),
            F.lit(float(ended - leased)).alias("duration_ms"),
        )
        for n, (outcome, leased, ended, error) in enumerate(TRIES[fate], 1)
    ]  # fmt: skip
    return F.array(*rows).cast(ATTEMPTS)


def clean_history(spark: SparkSession, number: int, *, seed: int = 1) -> DataFrame:
    """Messages 1 to number, with the columns of menzil.archive that the audit reads, and attempts."""
    i = F.col("id") - 1
    begin = int(BEGIN.timestamp() * 1_000_000)
    rows = spark.range(1, number + 1).select(
        "id",
        F.pmod(i, F.lit(CHANNELS)).cast("int").alias("c"),
        F.floor(i / CHANNELS).alias("s"),
        fate_of(F.col("id"), seed).alias("fate"),
        fate_of(F.col("id") - 70 * CHANNELS, seed).isin("dead", "permanent").alias("again"),
    )
    # Channels begin a little apart from each other.
    rows = rows.withColumn("born", F.lit(begin) + F.col("s") * 1_000_000 + F.col("c") * 1_000)
    last = {fate: (tries[-1] if tries else None) for fate, tries in TRIES.items()}
    ends = {"expired": 1500, "cancelled": 700}
    never = F.lit(None).cast("timestamp")
    return rows.select(
        "id",
        _by_fate({fate: F.lit(STATUS.get(fate, "completed")) for fate in TRIES}).alias("status"),
        F.concat(F.lit("channel-"), F.col("c")).alias("channel"),
        (F.col("c") + 1).alias("endpoint_id"),
        F.lit(0).cast("smallint").alias("priority"),
        _by_fate({fate: F.lit(len(tries)) for fate, tries in TRIES.items()}).cast("bigint").alias("num_attempts"),
        _by_fate({
            fate: F.lit(sum(t[0] in ("failed", "recovered") for t in tries) - (STATUS.get(fate) == "failed"))
            for fate, tries in TRIES.items()
        }).cast("int").alias("retry_count"),
        _after(0).alias("created_at"),
        F.when(F.col("fate") == "later", _after(3000)).alias("scheduled_at"),
        F.when(F.col("fate") == "expired", _after(1200)).alias("expires_at"),
        _by_fate({fate: _after(t[0][1]) if t else never for fate, t in TRIES.items()}).alias("first_leased_at"),
        _by_fate({fate: _after(t[1]) if t else never for fate, t in last.items()}).alias("leased_at"),
        _by_fate({fate: _after(t[2]) if t else _after(ends[fate]) for fate, t in last.items()}).alias("ended_at"),
        F.lit("w1").alias("worker"),
        F.concat(F.lit("key-"), F.pmod("s", F.lit(7))).alias("ordering_key"),
        _by_fate({fate: F.lit(t[3] if t else None).cast("string") for fate, t in last.items()}).alias("last_error"),
        F.when(F.col("again") & (F.col("id") > 70 * CHANNELS), F.col("id") - 70 * CHANNELS).alias("redrive_of"),
        F.lit(None).cast("bigint").alias("replay_of"),
        _by_fate({fate: _tries(fate) for fate in TRIES}).alias("attempts"),
    )  # fmt: skip


def event_frame(spark: SparkSession, rows: list[tuple[str, str, str | None, str | None, float]]) -> DataFrame:
    """Lines of an event log: event type, entity, old and new value as JSON, seconds after the beginning."""
    return spark.createDataFrame(
        [
            (n, kind, "channel", entity, old, new, None, BEGIN + timedelta(seconds=seconds))
            for n, (kind, entity, old, new, seconds) in enumerate(rows, 1)
        ],
        "id bigint, event_type string, entity_type string, entity_id string, old_value string, new_value string, "
        "metadata string, created_at timestamp",
    )


def clean_events(spark: SparkSession) -> DataFrame:
    """The log of the same history: limits of every channel, and the retry budget."""
    limits = f'{{"max_concurrency": {LIMIT}, "release_interval_ms": {RATE_MS}, "release_count": {RATE_COUNT}}}'
    made = [("channel.created", f"channel-{c}", None, limits, -60.0) for c in range(CHANNELS)]
    budget = ("setting.changed", "default_max_retries", '"10"', f'"{MAX_RETRIES}"', -90.0)
    return event_frame(spark, [budget, *made])
