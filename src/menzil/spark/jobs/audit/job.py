"""The audit itself: every check that the given history allows, counted, with a few samples and their stories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from menzil.spark.jobs.audit.budgets import budgets
from menzil.spark.jobs.audit.checks.flow import concurrency, rate
from menzil.spark.jobs.audit.checks.ids import ends, lost, origins, risen
from menzil.spark.jobs.audit.checks.keys import keys
from menzil.spark.jobs.audit.checks.life import lives
from menzil.spark.jobs.audit.checks.retries import retries
from menzil.spark.jobs.audit.history import History, leases, slim
from menzil.spark.jobs.audit.limits import limits
from menzil.spark.jobs.audit.result import KINDS, AuditReport, Check, Violation
from menzil.spark.jobs.audit.sources import opened
from menzil.spark.jobs.few import few

Progress = Callable[[str], None]

NO_LIMITS = "not checked: neither a database nor an event log in the lake says which limits held"
NO_LEDGER = "not checked: only a ledger of acknowledged ids can tell a lost message from a rolled back send"
NO_ARCHIVE = "not checked: completed messages are not always archived here, so a missing one is not a lost one"
NO_LIVE = "not checked: no database to ask what is in the queue"
NO_BUDGETS = "only permanent errors: without an event log the retry budget is not known"
LOGGED_BUDGETS = "where the event log tells the budget: without a database the setting of today is not known"
BY_SLACK = "for messages sent at least {seconds:g} s apart: the history does not know when a send was committed"


def audit(
    spark: SparkSession,
    lake: str | None = None,
    dsn: str | None = None,
    *,
    ledger: str | None = None,
    samples: int = 20,
    commit_slack: float = 60.0,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit a lake, a database, or a lake with what its database has beyond it. Driver; the work runs in tasks."""
    with opened(spark, lake, dsn, ledger, commit_slack) as history:
        return audit_history(history, samples=samples, progress=progress)


def audit_history(history: History, *, samples: int = 20, progress: Progress | None = None) -> AuditReport:
    """Audit frames. Driver, once; it collects counts and at most `samples` violations of a kind."""
    tell = progress or (lambda _: None)
    # Every check reads this, and a database should be read once: on disk, since it may be larger than the memory.
    messages = slim(history.messages).persist(StorageLevel.DISK_ONLY)
    try:
        tell("Reading the history")
        counts, first_at, last_at, notes = _account(messages, history)
        tell(f"Checking {counts['ended']:,} ended messages")
        with _kept(limits(history.events, history.channels), _budgets(history)) as (spans, allowed):
            found = violations_of(messages, history, spans, allowed).persist(StorageLevel.MEMORY_AND_DISK)
            numbers = {row["kind"]: row["count"] for row in found.groupBy("kind").count().collect()}
            sampled = _samples(found, samples) if numbers else []
            found.unpersist()
        stories = _stories(history, sampled)
    finally:
        messages.unpersist()
    checks = [_check(kind, numbers.get(kind, 0), history) for kind in KINDS]
    return AuditReport(counts, first_at, last_at, checks, sampled, notes, stories)


def violations_of(
    messages: DataFrame, history: History, spans: DataFrame | None, allowed: DataFrame | None
) -> DataFrame:
    """All violations, of all kinds: the union of the checks. Nothing runs yet."""
    parts: list[DataFrame | None] = [
        ends(messages),
        risen(messages, history),
        lost(messages, history),
        origins(messages, history),
        lives(messages, _hurried(history)),
        retries(messages, allowed, history.commit_slack),
        keys(messages, history),
    ]
    if spans is not None:
        tries = leases(messages)
        parts += [concurrency(tries, spans, history.live), rate(tries, spans)]
    return reduce(DataFrame.unionByName, [part for part in parts if part is not None])


def _budgets(history: History) -> DataFrame | None:
    return budgets(history.events, history.max_retries, history.policies)


@contextmanager
def _kept(*frames: DataFrame | None) -> Iterator[list[DataFrame | None]]:
    """Small frames that several checks join with: worked out once."""
    kept = [frame if frame is None else frame.persist(StorageLevel.MEMORY_AND_DISK) for frame in frames]
    try:
        yield kept
    finally:
        for frame in kept:
            if frame is not None:
                frame.unpersist()


def _hurried(history: History) -> DataFrame | None:
    """Messages that an operator made due before their time: those may be early."""
    if history.events is None:
        return None
    told = history.events.where("event_type = 'message.hurried'")
    return told.select(F.col("entity_id").cast("bigint").alias("id")).distinct()


def _account(messages: DataFrame, history: History) -> tuple[dict[str, int], Any, Any, list[str]]:
    """How many ended how, how many live, and what the ids say about the rest."""
    row = messages.agg(
        F.count("*").alias("ended"),
        *(
            F.count_if(F.col("status") == status).alias(status)
            for status in ("completed", "failed", "expired", "cancelled")
        ),
        F.min("created_at").alias("first_at"),
        F.max("ended_at").alias("last_at"),
        F.min("id").alias("low"),
        F.max("id").alias("high"),
    ).collect()[0]
    counts = {name: int(row[name]) for name in ("ended", "completed", "failed", "expired", "cancelled")}
    live = history.live.count() if history.live is not None else 0
    counts["live"] = live
    if history.ledger is not None:
        counts["acknowledged"] = history.ledger.select("id").distinct().count()
    notes = []
    unseen = (row["high"] - row["low"] + 1 - row["ended"]) if row["high"] is not None else 0
    if unseen > 0:
        notes.append(
            f"{unseen:,} ids between {row['low']:,} and {row['high']:,} are not in this history: rolled back sends, "
            "messages that still live or are not exported, dropped months. Only a ledger tells whether one was lost."
        )
    return counts, row["first_at"], row["last_at"], notes


def _samples(found: DataFrame, number: int) -> list[Violation]:
    place = F.row_number().over(Window.partitionBy("kind").orderBy("message_id", "at"))
    rows = few(found.withColumn("n", place).where(F.col("n") <= number).drop("n"))
    order = list(KINDS)
    rows.sort(key=lambda row: (order.index(row["kind"]), row["message_id"]))
    return [Violation(**row) for row in rows]


def _stories(history: History, sampled: list[Violation]) -> dict[int, dict[str, Any]]:
    ids = sorted({v.message_id for v in sampled} | {v.other_id for v in sampled if v.other_id is not None})
    if not ids:
        return {}
    wanted = [
        name
        for name in ("id", "status", "channel", "created_at", "scheduled_at", "expires_at", "ended_at", "num_attempts",
                     "retry_count", "ordering_key", "redrive_of", "replay_of", "last_error", "worker", "leased_at",
                     "attempts")
        if name in history.messages.columns
    ]  # fmt: skip
    rows = few(history.messages.where(F.col("id").isin(ids)).select(*wanted).limit(2 * len(ids)))
    return {row["id"]: row for row in rows}


def _check(kind: str, number: int, history: History) -> Check:
    note, skipped = None, False
    limits_known = history.events is not None or history.channels is not None
    if kind == "lost" and (history.ledger is None or not history.keeps_completed):
        note, skipped = (NO_LEDGER if history.ledger is None else NO_ARCHIVE), True
    elif kind == "ended-and-live" and history.live is None:
        note, skipped = NO_LIVE, True
    elif kind in ("concurrency", "rate") and not limits_known:
        note, skipped = NO_LIMITS, True
    elif kind == "retries" and history.events is None:
        note = NO_BUDGETS
    elif kind == "retries" and history.max_retries is None:
        note = LOGGED_BUDGETS
    elif kind == "key-order" and (history.ledger is None or "acknowledged_at" not in history.ledger.columns):
        note = BY_SLACK.format(seconds=history.commit_slack.total_seconds())
    return Check(kind, KINDS[kind], number, note, skipped)
