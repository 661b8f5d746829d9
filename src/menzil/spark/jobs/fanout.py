"""fanout: a table of events becomes messages to all subscribers, exactly once per send id.

What menzil.publish does for one event: subscriptions with their filters, one copy per endpoint, none for a disabled
one, {"event_type": name} in the metadata of each copy, schemas enforced. Subscriptions are read once, at the
beginning.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from menzil.model.errors import UnknownNameError, UsageError
from menzil.ops import looking_pipeline
from menzil.spark.jobs.bulk import BulkPlan, SendReport, by_count, reason, refused_rows, sample, set_aside
from menzil.spark.jobs.columns import OPTIONS, shape
from menzil.spark.jobs.door import already_sent, write
from menzil.spark.jobs.events import receivers, schema_problems
from menzil.spark.jobs.match import Subscription, demand_shallow
from menzil.spark.jobs.plainly import plainly
from menzil.spark.jobs.refuse import problems
from menzil.spark.source.door import ask
from menzil.spark.source.options import demand_id

#: An event has a type where a message has an endpoint.
_WORDS = {"event_type": "string"} | {word: kind for word, kind in OPTIONS.items() if word != "endpoint"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FanoutPlan(BulkPlan):
    """What a fan-out would do. `unwanted` events fit no subscription and make no message."""

    events: int
    unwanted: int
    subscriptions: int


class Fan(NamedTuple):
    """The events with `_problem` and `_endpoints`, who gets them; and how many subscriptions were asked."""

    events: DataFrame
    subscriptions: int


def fan(
    frame: DataFrame,
    dsn: str,
    *,
    event_type: str | None = None,
    payload: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Fan:
    """Find out who gets which event. Driver; reads the frame only to learn its event types, when they are a column."""
    events = shape(frame, given={"event_type": event_type}, payload=payload, columns=columns, words=_WORDS)
    if "content" in events.columns:
        raise UsageError("The payload of an event is JSON, not bytes.", hint="name a column of texts or structs")
    names = [event_type] if event_type is not None else _types(events)
    known = {row["name"]: row["has_schema"] for row in ask(dsn, looking_pipeline.event_types_named(names))}
    if event_type is not None and event_type not in known:
        hint = "`menzil event-type list` shows those there are"
        raise UnknownNameError(f"There is no event type named {event_type!r}.", hint=hint)
    unknown = F.concat(F.lit("There is no event type named '"), F.col("event_type"), F.lit("'."))
    stray = F.when(~F.col("event_type").isin(sorted(known)), unknown)
    events = events.withColumn("_problem", F.coalesce("_problem", stray))
    events = problems(events, ask(dsn, looking_pipeline.max_payload_size()))
    strict = frozenset(name for name, has_schema in known.items() if has_schema)
    if strict:
        events = events.withColumn("_problem", F.coalesce("_problem", _schema_problem(dsn, strict)))
    found = tuple(
        Subscription(row["event_type"], row["endpoint_name"], row["filter"])
        for row in ask(dsn, looking_pipeline.open_subscriptions(sorted(known)))
    )
    demand_shallow(found)
    return Fan(events.withColumn("_endpoints", _of_good("event_type", "payload", receivers(found))), len(found))


def _types(events: DataFrame) -> list[str]:
    return sorted(row[0] for row in events.select("event_type").distinct().collect() if row[0] is not None)


def _of_good(kind: str, payload: str, udf: Any) -> Column:
    """Ask a UDF about good rows alone. Spark may call it for every row, so bad rows get a harmless body."""
    good = F.col("_problem").isNull()
    return F.when(good, udf(F.col(kind), F.when(good, F.col(payload)).otherwise(F.lit("null"))))


def _schema_problem(dsn: str, strict: frozenset[str]) -> Column:
    good = F.col("_problem").isNull()
    found: Column = schema_problems(dsn, strict)(F.col("event_type"), F.when(good, F.col("payload")))
    return found


def copies(events: DataFrame) -> DataFrame:
    """One message for each endpoint of each event."""
    one = events.where("_problem is null").withColumn("endpoint", F.explode("_endpoints"))
    kind = F.to_json(F.struct("event_type"))
    metadata: Column = kind
    if "metadata" in events.columns:
        # Text joined to text keeps every digit; jsonb takes the last of two equal keys, which is ours.
        given = F.col("metadata")
        comma = F.when(given.rlike(r"^\s*\{\s*\}\s*$"), F.lit("")).otherwise(F.lit(","))
        joined = F.concat(F.regexp_replace(given, r"\s*\}\s*$", ""), comma, F.substring(kind, 2, 1 << 20))
        metadata = F.coalesce(joined, kind)
    return one.withColumn("metadata", metadata).drop("event_type", "_problem", "_endpoints")


@plainly
def plan_fanout(
    spark: SparkSession,  # noqa: ARG001 - every job takes it first
    frame: DataFrame,
    dsn: str,
    *,
    send_id: str,
    event_type: str | None = None,
    payload: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> FanoutPlan:
    """Find out who would get which event, and send nothing."""
    demand_id(send_id, "send id")
    return _plan(fan(frame, dsn, event_type=event_type, payload=payload, columns=columns), dsn, send_id)


def _plan(fanned: Fan, dsn: str, send_id: str) -> FanoutPlan:
    events = fanned.events
    # One row per copy; one without an endpoint for an event that is refused, or that has no subscriber.
    rows = events.select(F.posexplode_outer("_endpoints").alias("place", "endpoint"), reason().alias("reason"))
    first = F.count_if(F.coalesce("place", F.lit(0)) == 0)
    counts = rows.groupBy("endpoint", "reason").agg(F.count(F.lit(1)).alias("count"), first.alias("events")).collect()
    endpoints = {row["endpoint"]: row["count"] for row in counts if row["endpoint"] is not None}
    reasons = {row["reason"]: row["count"] for row in counts if row["reason"] is not None}
    unwanted = sum(row["count"] for row in counts if row["endpoint"] is None and row["reason"] is None)
    refused = sum(reasons.values())
    return FanoutPlan(
        send_id=send_id,
        events=sum(row["events"] for row in counts),
        messages=sum(endpoints.values()),
        unwanted=unwanted,
        refused=refused,
        subscriptions=fanned.subscriptions,
        endpoints=by_count(endpoints),
        already_sent=already_sent(dsn, send_id),
        sample=sample(copies(events)) if endpoints else [],
        reasons=by_count(reasons),
        refused_rows=refused_rows(events.drop("_endpoints")) if refused else [],
    )


@plainly
def fanout(
    spark: SparkSession,  # noqa: ARG001 - every job takes it first
    frame: DataFrame,
    dsn: str,
    *,
    send_id: str,
    event_type: str | None = None,
    payload: str | None = None,
    columns: Mapping[str, str] | None = None,
    rejects: str | None = None,
    plan: FanoutPlan | None = None,
) -> SendReport:
    """Send every event to all who have subscribed, in one transaction, unless this send id has done so before.

    `rejects` and `plan` are those of send().
    """
    demand_id(send_id, "send id")
    started = time.monotonic()
    before = already_sent(dsn, send_id)
    if before is not None:
        return SendReport(send_id, before, 0, repeated=True, seconds=time.monotonic() - started)
    fanned = fan(frame, dsn, event_type=event_type, payload=payload, columns=columns)
    seen = _plan(fanned, dsn, send_id) if plan is None else plan
    set_aside(fanned.events.drop("_endpoints"), seen, rejects, f"{seen.events:,} events")
    if not seen.messages:
        return SendReport(send_id, 0, seen.refused, repeated=False, seconds=time.monotonic() - started)
    made = write(copies(fanned.events), dsn, send_id, what="fanout")
    return SendReport(send_id, made, seen.refused, repeated=False, seconds=time.monotonic() - started)
