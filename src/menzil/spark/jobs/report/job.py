"""The report: run the frames, keep the small results, write the page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from menzil.model.errors import PermissionDeniedError
from menzil.ops import history
from menzil.report.figures import (
    ENDPOINTS,
    ENOUGH,
    ERRORS,
    INCIDENTS,
    LEADERS,
    WIDTHS,
    Figures,
    Row,
    Slo,
    bucket_width,
    period,
)
from menzil.report.page import page
from menzil.spark.jobs.audit.sources import events_of, messages_of
from menzil.spark.jobs.report import frames
from menzil.spark.source.door import ask

Progress = Callable[[str], None]
_COUNTS = ("sent", "completed", "failed", "expired", "cancelled", "retried", "tries", "within")


def report(
    spark: SparkSession,
    lake: str | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    dsn: str | None = None,
    slo: Slo | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    progress: Progress | None = None,
) -> Figures:
    """Report on a lake, a database or both, and write the page to `out` if it is given. Driver."""
    messages = messages_of(spark, lake, dsn)
    events = events_of(spark, lake, dsn)
    names = [name for name, given in (("the lake", lake), ("the live database", dsn)) if given is not None]
    source = " and ".join(names) + (f" {Path(lake).name}" if lake and not dsn else "")
    made = figures_of(messages, events, source=source, slo=slo, start=start, end=end, progress=progress)
    if dsn is not None:
        made = replace(made, redrivable=_redrivable(dsn))
    if out is not None:
        Path(out).write_text(page(made), encoding="utf-8")
    return made


def figures_of(
    messages: DataFrame,
    events: DataFrame | None = None,
    *,
    source: str,
    slo: Slo | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    progress: Progress | None = None,
) -> Figures:
    """The figures of these frames. Driver, once; it collects aggregates of bounded size only."""
    tell, goal = progress or (lambda _: None), slo or Slo()
    tell("Reading the history")
    frame = frames.prepared(_between(messages, start, end)).persist(StorageLevel.DISK_ONLY)
    earlier = _before(messages, goal, start, end)
    try:
        span = [
            F.min("created_at").alias("first_at"),
            F.max("ended_at").alias("last_at"),
            F.max("created_at").alias("newest_at"),
        ]
        total = frame.agg(*frames.measures(goal.seconds), *span).collect()[0].asDict()
        if not total["sent"]:
            return Figures(source, datetime.now(UTC), goal, WIDTHS[0], total, before=_total(earlier))
        width = bucket_width((total["newest_at"] - total["first_at"]).total_seconds())
        tell(f"Counting {total['sent']:,} messages")
        per_endpoint = frames.by(frame, goal.seconds, "channel").persist(StorageLevel.MEMORY_AND_DISK)
        try:
            shown = _top(per_endpoint, frames.trouble(), ENDPOINTS)
            enough = per_endpoint.where(F.col("sent") >= min(ENOUGH, total["sent"]))
            slowest = _top(enough.where("completed > 0"), F.element_at("delivered_s", 3).desc(), LEADERS)
            noisiest = _top(
                per_endpoint.where("tries > completed"), (F.col("tries") - F.col("completed")).desc(), LEADERS
            )
            endpoint_count, silent_count = per_endpoint.agg(F.count("*"), F.count_if(frames.silent())).collect()[0]
        finally:
            per_endpoint.unpersist()
        series: dict[str, list[Row]] = {row["channel"]: [] for row in shown}
        chosen = frame.where(F.col("channel").isin(list(series)))
        for row in frames.volumes(chosen, width).orderBy("bucket").collect():
            series[row["channel"]].append(row.asDict())
        tell("Sorting dead letters")
        letters = frames.dead_letters(frame).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            errors = _top(letters, F.desc("messages"), ERRORS)
            error_count = letters.count()
        finally:
            letters.unpersist()
        incidents, incident_count = _incidents(events, total)
        return Figures(
            source=source,
            made_at=datetime.now(UTC),
            slo=goal,
            width=width,
            total=total,
            times=_rows(frames.by(frame, goal.seconds, frames.bucket(width)).orderBy("bucket")),
            endpoints=shown,
            endpoint_count=endpoint_count,
            silent_count=silent_count,
            series=series,
            slowest=slowest,
            noisiest=noisiest,
            hours=_rows(frames.hours(frame)),
            retries=_rows(frames.retries(frame).orderBy("tries")),
            errors=errors,
            error_count=error_count,
            incidents=incidents,
            incident_count=incident_count,
            before=_total(earlier),
            endpoints_before=_of_endpoints(earlier, list(series)),
        )
    finally:
        frame.unpersist()
        if earlier is not None:
            earlier.unpersist()


def _redrivable(dsn: str) -> dict[str, int] | None:
    """How many dead letters of each cause the database can still redrive; None when this role may not ask."""
    with suppress(PermissionDeniedError):
        found: Counter[str] = Counter()
        for row in ask(dsn, history.dlq_causes(None, 10_000)):
            found[row["cause"]] += row["failed_count"]
        return dict(found)
    return None


def _before(messages: DataFrame, goal: Slo, start: datetime | None, end: datetime | None) -> DataFrame | None:
    """The period before: its measures by endpoint and, in a row without one, of all."""
    earlier = period(start, end, datetime.now(UTC))
    if earlier is None:
        return None
    frame = frames.prepared(_between(messages, *earlier))
    return frame.rollup("channel").agg(*frames.measures(goal.seconds)).persist(StorageLevel.MEMORY_AND_DISK)


def _total(earlier: DataFrame | None) -> Row | None:
    if earlier is None:
        return None
    found = _rows(earlier.where("channel is null").drop("channel"))
    return found[0] if found else dict.fromkeys(_COUNTS, 0) | {"first_s": None, "delivered_s": None}


def _of_endpoints(earlier: DataFrame | None, names: list[str]) -> dict[str, Row]:
    if earlier is None:
        return {}
    return {row.pop("channel"): row for row in _rows(earlier.where(F.col("channel").isin(names)))}


def _between(messages: DataFrame, start: datetime | None, end: datetime | None) -> DataFrame:
    if start is not None:
        messages = messages.where(F.col("created_at") >= F.lit(start))
    return messages if end is None else messages.where(F.col("created_at") < F.lit(end))


def _incidents(events: DataFrame | None, total: Row) -> tuple[list[Row], int | None]:
    if events is None:
        return [], None
    inside = frames.incidents(events).where(
        (F.col("opened_at") <= F.lit(total["last_at"]))
        & (F.col("closed_at").isNull() | (F.col("closed_at") >= F.lit(total["first_at"])))
    )
    inside = inside.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        return _top(inside, F.desc("opened_at"), INCIDENTS), inside.count()
    finally:
        inside.unpersist()


def _top(frame: DataFrame, order: Any, number: int) -> list[Row]:
    return _rows(frame.orderBy(*order if isinstance(order, tuple) else (order,)).limit(number))


def _rows(frame: DataFrame) -> list[Row]:
    return [row.asDict(recursive=True) for row in frame.collect()]
