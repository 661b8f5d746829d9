"""Where the history of an audit or a report comes from: a lake, a database, or both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from menzil.model.errors import UsageError
from menzil.ops import looking, looking_tasks
from menzil.ops.run import run
from menzil.spark.database import asking
from menzil.spark.jobs.audit.history import History
from menzil.spark.lake.read import events as lake_events
from menzil.spark.lake.read import read as read_lake
from menzil.spark.read import read

#: Of menzil.archive, what an audit and a report read: no bodies.
COLUMNS = (
    "id", "status", "channel", "endpoint_id", "priority", "num_attempts", "retry_count", "created_at", "scheduled_at",
    "expires_at", "first_leased_at", "leased_at", "ended_at", "worker", "ordering_key", "last_error", "redrive_of",
    "replay_of",
)  # fmt: skip
#: Of menzil.event_log.
EVENT = ("id", "event_type", "entity_type", "entity_id", "old_value", "new_value", "created_at")
#: What makes two rows the same message or line: a database that was set back gives an id out again.
_SAME = ("id", "created_at")
TRY = ("attempt", "outcome", "leased_at", "ended_at", "worker", "error", "status_code", "duration_ms")


def messages_of(spark: SparkSession, lake: str | None, dsn: str | None) -> DataFrame:
    """Ended messages with their attempts. With both, the lake is completed by what was not exported yet."""
    if lake is None and dsn is None:
        raise UsageError("No history was named.", hint="give a lake, a database, or both")
    ended = None if dsn is None else live_messages(spark, dsn)
    if lake is None:
        assert ended is not None
        return ended
    kept = read_lake(spark, lake, dsn).select(*COLUMNS, _lean("attempts"))
    return kept if ended is None else kept.unionByName(ended.join(kept.select(*_SAME), [*_SAME], "left_anti"))


def events_of(spark: SparkSession, lake: str | None, dsn: str | None) -> DataFrame | None:
    """The event log; None when a lake alone has none yet. With both, the lake keeps what the database cleaned up."""
    kept = None if lake is None else lake_events(spark, lake, dsn)
    told = None if kept is None else kept.select(*EVENT)
    if dsn is None:
        return told
    newest = read(spark, dsn, "event_log", columns=EVENT)
    return newest if told is None else told.unionByName(newest.join(told.select(*_SAME), [*_SAME], "left_anti"))


def _lean(column: str) -> Column:
    """Attempts with the same fields; further fields of the source are left out."""
    return F.transform(column, lambda t: F.struct(*(t[name].alias(name) for name in TRY))).alias("attempts")


def live_messages(spark: SparkSession, dsn: str) -> DataFrame:
    """The archive of a database. A successful try is in the archive row; only other tries are looked up."""
    ended = read(spark, dsn, "archive", columns=COLUMNS)
    tries = (
        read(spark, dsn, "attempts", columns=("message_id", *TRY))
        .where("outcome <> 'completed'")
        .groupBy(F.col("message_id").alias("id"))
        .agg(F.array_sort(F.collect_list(F.struct(*TRY))).alias("attempts"))
    )
    return ended.join(tries, "id", "left")


def read_ledger(spark: SparkSession, path: str) -> DataFrame:
    """Acknowledged ids from Parquet, JSON lines or CSV with a header: column id, and acknowledged_at if it is there."""
    kind = path.rstrip("/").rsplit(".", 1)[-1].lower()
    if kind == "csv":
        frame = spark.read.option("header", True).csv(path)
    elif kind in ("json", "jsonl", "ndjson"):
        # Of a line that is cut off Spark would take what it finds: an id of which digits are missing.
        frame = spark.read.option("mode", "FAILFAST").json(path)
    else:
        frame = spark.read.parquet(path)
    if "id" not in frame.columns:
        raise UsageError("The ledger has no column id.", hint=f"it has {', '.join(frame.columns) or 'none'}")
    told = [F.col("acknowledged_at").cast("timestamp_ltz")] if "acknowledged_at" in frame.columns else []
    found = frame.select(F.col("id").cast("bigint").alias("id"), *told)
    if not found.where("id is null").isEmpty():  # a message that was acknowledged, and nobody would look for it
        hint = "each line has an id: a number in a column of CSV, or a JSON object on a line of its own"
        raise UsageError("The ledger has a line without an id.", hint=hint)
    return found


@contextmanager
def opened(
    spark: SparkSession, lake: str | None, dsn: str | None, ledger: str | None, commit_slack: float
) -> Iterator[History]:
    """The history of these sources, for as long as the audit runs. Driver.

    The queue is read and kept before the archive is: what ends in between is in both, never in neither.
    """
    slack = timedelta(seconds=commit_slack)
    acknowledged = read_ledger(spark, os.fspath(ledger)) if ledger else None
    with ExitStack() as kept:
        if dsn is None:
            events = _kept(kept, events_of(spark, lake, None))
            messages = messages_of(spark, lake, None)
            always = events is None or events.where(_SWITCHED).isEmpty()
            yield History(messages, events=events, ledger=acknowledged, commit_slack=slack, keeps_completed=always)
            return
        with asking(dsn, "menzil audit") as conn:
            live_at = run(conn, looking.now())
            max_retries = run(conn, looking_tasks.most_retries())
            archives = run(conn, looking_tasks.archives())
        live = _kept(kept, read(spark, dsn, "queue", columns=("id", "channel", "processing_started_at")))
        events = _kept(kept, events_of(spark, lake, dsn))
        assert live is not None
        assert events is not None
        live.count()
        yield History(
            messages_of(spark, lake, dsn),
            events=events,
            live=live,
            channels=read(spark, dsn, "channels"),
            policies=read(spark, dsn, "endpoints", columns=("name", "retry_policy")).select(
                "name", F.get_json_object("retry_policy", "$.max_retries").cast("bigint").alias("max_retries")
            ),
            ledger=acknowledged,
            max_retries=max_retries,
            live_at=live_at,
            commit_slack=slack,
            keeps_completed=archives and events.where(_SWITCHED).isEmpty(),
        )


_SWITCHED = "event_type = 'setting.changed' and entity_id = 'archive_completed'"


def _kept(stack: ExitStack, frame: DataFrame | None) -> DataFrame | None:
    """Read once, however many checks ask; let go with the stack."""
    if frame is None:
        return None
    stack.callback(frame.unpersist)
    return frame.persist(StorageLevel.DISK_ONLY)
