"""send: the rows of any DataFrame become messages, exactly once per send id.

Nothing is sent before every row was looked at. Without a place for refused rows, one of them stops the whole send; with
one they go there and the others are sent.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from menzil.model.errors import InvalidValueError
from menzil.ops import looking_pipeline
from menzil.spark.jobs.columns import shape
from menzil.spark.jobs.door import already_sent, write
from menzil.spark.jobs.endpoints import closed, demand_open
from menzil.spark.jobs.plainly import plainly
from menzil.spark.jobs.refuse import problems
from menzil.spark.lake.layout import directory
from menzil.spark.source.door import ask

#: Rows that a plan shows: messages as they would be sent, and refused ones with their reasons.
SAMPLE = 3
REFUSED_SHOWN = 20

#: Letters of a body in them.
LONGEST = 200


@dataclass(frozen=True, slots=True)
class SendPlan:
    """What a send would do. `already_sent` is the number of messages that this send id has made before, else None."""

    send_id: str
    rows: int
    messages: int
    refused: int
    endpoints: dict[str, int]
    already_sent: int | None
    sample: list[dict[str, Any]] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    refused_rows: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SendReport:
    """What a send did. A repeat of a send id has made nothing new: `messages` are those of the first time."""

    send_id: str
    messages: int
    refused: int
    repeated: bool
    seconds: float


def checked(
    spark: SparkSession,
    frame: DataFrame,
    dsn: str,
    *,
    endpoint: str | None = None,
    payload: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> DataFrame:
    """The messages of a frame, with `_problem`: why the engine would refuse this row, or NULL.

    Driver; reads the frame only to learn its endpoints, when they are a column.
    """
    if endpoint is not None:
        demand_open(dsn, endpoint)
    shaped = shape(frame, given={"endpoint": endpoint}, payload=payload, columns=columns)
    if endpoint is None:
        names = [row[0] for row in shaped.select("endpoint").distinct().collect() if row[0] is not None]
        shaped = _with_closed(spark, shaped, closed(dsn, names))
    return problems(shaped, ask(dsn, looking_pipeline.max_payload_size()))


def _with_closed(spark: SparkSession, shaped: DataFrame, reasons: Mapping[str, str]) -> DataFrame:
    if not reasons:
        return shaped
    shut = spark.createDataFrame(list(reasons.items()), "endpoint string, _closed string")
    joined = shaped.join(F.broadcast(shut), "endpoint", "left")
    return joined.withColumn("_problem", F.coalesce("_problem", "_closed")).drop("_closed")


@plainly
def plan_send(
    spark: SparkSession,
    frame: DataFrame,
    dsn: str,
    *,
    send_id: str,
    endpoint: str | None = None,
    payload: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> SendPlan:
    """Look at every row and send none. One pass over the frame, one more when endpoints are a column."""
    return _plan(checked(spark, frame, dsn, endpoint=endpoint, payload=payload, columns=columns), dsn, send_id)


def _plan(rows: DataFrame, dsn: str, send_id: str) -> SendPlan:
    good = F.col("_problem").isNull()
    counts = rows.groupBy(F.when(good, F.col("endpoint")).alias("endpoint"), reason().alias("reason")).count().collect()
    endpoints = {row["endpoint"]: row["count"] for row in counts if row["reason"] is None}
    reasons = {row["reason"]: row["count"] for row in counts if row["reason"] is not None}
    messages, refused = sum(endpoints.values()), sum(reasons.values())
    return SendPlan(
        send_id=send_id,
        rows=messages + refused,
        messages=messages,
        refused=refused,
        endpoints=by_count(endpoints),
        already_sent=already_sent(dsn, send_id),
        sample=[shown(row) for row in rows.where(good).drop("_problem").limit(SAMPLE).collect()] if messages else [],
        reasons=by_count(reasons),
        refused_rows=[shown(row) for row in rows.where(~good).limit(REFUSED_SHOWN).collect()] if refused else [],
    )


def reason() -> Column:
    """What is wrong with a row, worded so that rows with the same fault are counted together."""
    return F.regexp_replace("_problem", r"has \d+ bytes", "has too many bytes")


def by_count(counts: Mapping[str, int]) -> dict[str, int]:
    """The most frequent first."""
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def shown(row: Row) -> dict[str, Any]:
    """A row for people: what is not there is left out, bodies are cut, bytes are counted."""
    named = {name.removeprefix("_"): value for name, value in row.asDict().items() if value is not None}
    return {name: _cut(value) for name, value in named.items()}


def _cut(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return f"{len(value)} bytes"
    if isinstance(value, datetime):  # Spark gives the wall clock of this machine, without a zone
        return value.astimezone(UTC)
    return value[:LONGEST] + "…" if isinstance(value, str) and len(value) > LONGEST else value


@plainly
def send(
    spark: SparkSession,
    frame: DataFrame,
    dsn: str,
    *,
    send_id: str,
    endpoint: str | None = None,
    payload: str | None = None,
    columns: Mapping[str, str] | None = None,
    rejects: str | None = None,
    plan: SendPlan | None = None,
) -> SendReport:
    """Look at every row, then send them all in one transaction, unless this send id has done so before.

    `rejects` is a directory for the rows that the engine would refuse, as JSON lines below the send id; the
    others are then sent. Without it one such row stops the send. With a `plan` of the same frame the first look is not
    repeated.
    """
    started = time.monotonic()
    before = already_sent(dsn, send_id)
    if before is not None:  # the source may be gone by now, and need not be read
        return SendReport(send_id, before, 0, repeated=True, seconds=time.monotonic() - started)
    rows = checked(spark, frame, dsn, endpoint=endpoint, payload=payload, columns=columns)
    seen = _plan(rows, dsn, send_id) if plan is None else plan
    if seen.refused:
        if rejects is None:
            raise refusal(seen)
        keep_rejects(rows, rejects, send_id)
    if not seen.messages:  # an id that has sent nothing is not used up
        return SendReport(send_id, 0, seen.refused, repeated=False, seconds=time.monotonic() - started)
    made = write(rows.where("_problem is null").drop("_problem"), dsn, send_id, what="send")
    return SendReport(send_id, made, seen.refused, repeated=False, seconds=time.monotonic() - started)


def keep_rejects(rows: DataFrame, rejects: str, send_id: str) -> None:
    """Write the refused rows to a directory of this send id; what else lies beside it is left alone."""
    bad = rows.where("_problem is not null").withColumnRenamed("_problem", "problem")
    bad.write.mode("overwrite").json(f"{rejects}/{directory(send_id)}")


def refusal(plan: SendPlan) -> InvalidValueError:
    """The error of a send that has rows which the engine would refuse."""
    worst, number = next(iter(plan.reasons.items()))
    sentence = f"{plan.refused:,} of {plan.rows:,} rows would be refused, {number:,} of them so: {worst}"
    return InvalidValueError(sentence, hint="nothing was sent; correct them, or give a directory for the rejected rows")
