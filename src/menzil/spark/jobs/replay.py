"""replay: messages of the lake are sent once more, through the front door, exactly once per run id.

Each becomes a new message with `replay_of`: same body, priority, headers, metadata, correlation id and ordering key; no
idempotency key and no expiry, as menzil.replay_message does. They keep the order they were created in.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from menzil.model.errors import DisabledError, InvalidValueError, UsageError
from menzil.ops import looking
from menzil.spark import lake as lakes
from menzil.spark.jobs.door import already_sent, write
from menzil.spark.jobs.erased import erased
from menzil.spark.jobs.order import in_order
from menzil.spark.jobs.plainly import of_lake
from menzil.spark.source.door import ask
from menzil.spark.source.endpoints import closed
from menzil.spark.source.options import demand_id

STATUSES = ("completed", "failed", "expired", "cancelled")

#: The longest a paced replay may take, and the fastest pace: the limits of menzil.replay_range.
TEN_YEARS = 315_360_000
FASTEST = 1_000_000

#: What a new message has of the old one.
_KEPT = ("payload", "content", "priority", "ordering_key", "correlation_id", "headers", "metadata")


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a replay that goes to one endpoint."""

    endpoint: str
    messages: int
    oldest: datetime
    newest: datetime


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a replay would do. `closed` says which endpoints take no messages: then nothing is replayed at all.

    `already_sent` is the number of messages that this run id has made before, else None. So many `erased` messages are
    left out: nothing of their bodies is to be sent again.
    """

    run_id: str
    messages: int
    endpoints: list[Share]
    rate: float | None
    seconds: float | None
    already_sent: int | None
    closed: list[str]
    erased: int = 0


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay did. A repeat of a run id has made nothing new: `messages` are those of the first time."""

    run_id: str
    messages: int
    repeated: bool
    seconds: float


def send_id(run_id: str) -> str:
    """The id by which the front door knows a replay."""
    return f"replay:{run_id}"


def chosen(
    spark: SparkSession,
    lake: str,
    dsn: str | None = None,
    *,
    endpoint: str | Collection[str] | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    status: str | None = None,
    where: str | None = None,
) -> DataFrame:
    """The rows of the lake that are meant: created in [start, end), of these endpoints, ended so, `where` in SQL.

    Files that have none of them are not opened. `_erased` says of which nothing is to be sent.
    """
    if status is not None and status not in STATUSES:
        raise UsageError(f"{status!r} is not a status of the lake.", hint=f"use {', '.join(STATUSES)}")
    if start is not None and end is not None and start >= end:
        raise UsageError("The range ends before it begins.", hint="give a later end")
    rows = lakes.read(spark, lake, dsn, channels=_names(endpoint), start=start, end=end)
    if status is not None:
        rows = rows.where(F.col("status") == status)
    rows = rows if where is None else rows.where(where)
    gone = erased(spark, lake, dsn)
    if gone is None:
        return rows.withColumn("_erased", F.lit(False))
    later = F.coalesce(F.col("_erased_at") >= F.col("ended_at"), F.lit(False))  # an id may be given out again
    return rows.join(gone, "id", "left").withColumn("_erased", later).drop("_erased_at")


def _names(endpoint: str | Collection[str] | None) -> list[str] | None:
    return [endpoint] if isinstance(endpoint, str) else None if endpoint is None else sorted(endpoint)


@of_lake
def plan_replay(
    spark: SparkSession,
    dsn: str,
    lake: str,
    *,
    run_id: str,
    endpoint: str | Collection[str] | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    status: str | None = None,
    where: str | None = None,
    rate: float | None = None,
) -> ReplayPlan:
    """Say how many messages would go where, and how long that takes. Reads two columns, and those of `where`."""
    demand_id(run_id, "run id")
    rows = chosen(spark, lake, dsn, endpoint=endpoint, start=start, end=end, status=status, where=where)
    return _plan(rows, dsn, run_id, rate, _names(endpoint) or ())


def _plan(rows: DataFrame, dsn: str, run_id: str, rate: float | None, asked: Collection[str]) -> ReplayPlan:
    if rate is not None and not 0 < rate <= FASTEST:
        raise UsageError(
            f"A rate must be more than 0 and at most {FASTEST:,} messages per second.", hint="leave it out"
        )
    micros, sent = F.unix_micros("created_at"), ~F.col("_erased")
    times = F.when(sent, micros)
    counts = rows.groupBy("channel").agg(F.count_if(sent), F.min(times), F.max(times), F.count_if("_erased")).collect()
    shares = [Share(row[0], row[1], _moment(row[2]), _moment(row[3])) for row in sorted(counts) if row[1]]
    left_out = sum(row[4] for row in counts)
    total = sum(share.messages for share in shares)
    seconds = None if rate is None else total / rate
    if seconds is not None and seconds > TEN_YEARS:
        raise InvalidValueError(
            f"At that rate {total:,} messages would take more than ten years.",
            hint="give a higher rate, or a shorter range",
        )
    shut = closed(dsn, {*asked, *(share.endpoint for share in shares)})  # a misspelled one has no share
    before = already_sent(dsn, send_id(run_id))
    return ReplayPlan(run_id, total, shares, rate, seconds, before, list(shut.values()), left_out)


def _moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1_000_000, UTC)


@of_lake
def replay(
    spark: SparkSession,
    dsn: str,
    lake: str,
    *,
    run_id: str,
    endpoint: str | Collection[str] | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    status: str | None = None,
    where: str | None = None,
    rate: float | None = None,
    plan: ReplayPlan | None = None,
) -> ReplayReport:
    """Send them all in one transaction, unless this run id has done so before. With `rate`, so many
    become due per second.

    With a `plan` of the same replay the first look is not repeated.
    """
    demand_id(run_id, "run id")
    started = time.monotonic()
    before = already_sent(dsn, send_id(run_id))
    if before is not None:
        return ReplayReport(run_id, before, repeated=True, seconds=time.monotonic() - started)
    rows = chosen(spark, lake, dsn, endpoint=endpoint, start=start, end=end, status=status, where=where)
    seen = _plan(rows, dsn, run_id, rate, _names(endpoint) or ()) if plan is None else plan
    if seen.closed:
        others = f" (and {len(seen.closed) - 1} more)" if len(seen.closed) > 1 else ""
        raise DisabledError(
            f"{seen.closed[0]}{others}", hint="nothing was sent; open it, or replay the others with --endpoint"
        )
    if not seen.messages:  # a run id that has sent nothing is not used up
        return ReplayReport(run_id, 0, repeated=False, seconds=time.monotonic() - started)
    # Every message is sent with a body: one without was erased, and the line that says so may have been cleaned up.
    rows = rows.where("not _erased and (payload is not null or content is not null)").drop("_erased")
    made = write(messages(rows, ask(dsn, looking.now()), seen.messages, rate), dsn, send_id(run_id), what="replay")
    return ReplayReport(run_id, made, repeated=False, seconds=time.monotonic() - started)


def messages(rows: DataFrame, now: datetime, total: int, rate: float | None) -> DataFrame:
    """Rows of the lake as new messages, in order and, with a rate, each a little later than the one before."""
    ordered = in_order(rows.select("id", "created_at", "channel", *_KEPT), total)
    new = [F.col("channel").alias("endpoint"), *map(F.col, _KEPT), F.col("id").alias("replay_of")]
    if rate is not None:
        first = round(now.timestamp() * 1_000_000)
        due = F.lit(first) + F.floor(F.col("_place") * F.lit(1_000_000 / rate))
        new.append(F.timestamp_micros(due).alias("scheduled_at"))
    return ordered.select(*new)
