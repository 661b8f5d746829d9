"""send: the rows of any DataFrame become messages, exactly once per send id.

Nothing is sent before every row was looked at. Without a place for refused rows, one of them stops the whole send; with
one they go there and the others are sent.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from menzil.ops import looking_pipeline
from menzil.spark.jobs.bulk import BulkPlan, SendReport, by_count, reason, refused_rows, sample, set_aside
from menzil.spark.jobs.columns import shape
from menzil.spark.jobs.door import already_sent, write
from menzil.spark.jobs.plainly import plainly
from menzil.spark.jobs.refuse import problems
from menzil.spark.source.door import ask
from menzil.spark.source.endpoints import closed, demand_open
from menzil.spark.source.options import demand_id


@dataclass(frozen=True, slots=True, kw_only=True)
class SendPlan(BulkPlan):
    """What a send of rows would do."""

    rows: int


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
        demand_open(dsn, [endpoint])
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
    demand_id(send_id, "send id")
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
        sample=sample(rows.where(good).drop("_problem")) if messages else [],
        reasons=by_count(reasons),
        refused_rows=refused_rows(rows) if refused else [],
    )


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
    demand_id(send_id, "send id")
    started = time.monotonic()
    before = already_sent(dsn, send_id)
    if before is not None:  # the source may be gone by now, and need not be read
        return SendReport(send_id, before, 0, repeated=True, seconds=time.monotonic() - started)
    rows = checked(spark, frame, dsn, endpoint=endpoint, payload=payload, columns=columns)
    seen = _plan(rows, dsn, send_id) if plan is None else plan
    set_aside(rows, seen, rejects, f"{seen.rows:,} rows")
    if not seen.messages:  # an id that has sent nothing is not used up
        return SendReport(send_id, 0, seen.refused, repeated=False, seconds=time.monotonic() - started)
    made = write(rows.where("_problem is null").drop("_problem"), dsn, send_id, what="send")
    return SendReport(send_id, made, seen.refused, repeated=False, seconds=time.monotonic() - started)
