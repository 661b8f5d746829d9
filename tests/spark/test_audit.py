"""The audit finds every kind of broken promise, and none where none was broken."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from menzil.model.errors import MenzilError
from menzil.spark.jobs.audit import AuditReport, History, audit_history
from menzil.spark.jobs.audit.checks.flow import concurrency, rate
from menzil.spark.jobs.audit.found import moment
from menzil.spark.jobs.audit.history import leases, slim
from menzil.spark.jobs.audit.limits import limits
from menzil.spark.jobs.audit.result import KINDS
from menzil.spark.jobs.audit.sources import read_ledger
from menzil.spark.session import explain
from tests.spark.made_history import ATTEMPTS, BEGIN, clean_events, clean_history, event_frame
from tests.spark.plants import ALIVE, PLANTS, REGION, planted

NUMBER, WHOLE = 4000, REGION * len(PLANTS) + 100


def audited(spark: SparkSession, messages: DataFrame, **more: object) -> AuditReport:
    given = {"events": clean_events(spark), "commit_slack": timedelta(0), **more}
    return audit_history(History(messages, **given), samples=50)  # type: ignore[arg-type]


def found(report: AuditReport) -> dict[str, list[int]]:
    return {check.kind: report.found(check.kind) for check in report.checks if check.violations}


@pytest.fixture(scope="module")
def clean(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """A clean history with room for every plant; in files, so that no check makes it anew."""
    place = str(tmp_path_factory.mktemp("audit") / "clean")
    clean_history(spark, WHOLE).write.parquet(place)
    return spark.read.parquet(place)


# In every run test_audit_lake.py finds nothing in a clean history, and the next test nothing in clean messages.
@pytest.mark.torture
def test_clean_history_keeps_every_promise(spark: SparkSession, clean: DataFrame) -> None:
    messages = clean.where(f"id <= {NUMBER}")
    live = live_frame(spark, NUMBER + 1)
    ledger = messages.select("id").union(live.select("id"))
    report = audited(spark, messages, live=live, ledger=ledger)
    assert found(report) == {}
    assert report.ok
    assert not any(check.skipped for check in report.checks)
    counts = report.counts
    assert counts["ended"] == NUMBER
    assert (
        counts["completed"] + counts["failed"] + counts["expired"] + counts["cancelled"] + counts["live"]
        == counts["acknowledged"]
    )
    assert min(counts["completed"], counts["failed"], counts["expired"], counts["cancelled"]) > 0


def test_every_planted_violation_is_found_by_its_kind_with_its_messages_and_nothing_else(
    spark: SparkSession, clean: DataFrame
) -> None:
    garden = planted(spark, WHOLE, clean)
    report = audited(
        spark, garden.messages, ledger=garden.clean.select("id"), live=live_frame(spark, *garden.expected[ALIVE])
    )
    assert found(report) == garden.expected
    assert not report.ok
    told = {i for kind, which in garden.expected.items() if kind != "lost" for i in which}
    assert set(report.stories) >= told
    assert report.stories[garden.expected["early"][0]]["attempts"]


def live_frame(spark: SparkSession, *ids: int) -> DataFrame:
    ddl = "id bigint, channel string, processing_started_at timestamp"
    return spark.createDataFrame([(i, "channel-0", None) for i in ids], ddl)


def made(spark: SparkSession, leases: list[tuple[int, str, float, float]]) -> DataFrame:
    """One-try messages: id, channel, leased and ended in seconds after the beginning."""
    rows = [
        (i, channel, int(channel[-1]), BEGIN + timedelta(seconds=a), BEGIN + timedelta(seconds=b))
        for i, channel, a, b in leases
    ]
    frame = spark.createDataFrame(
        rows, "id bigint, channel string, endpoint_id int, leased_at timestamp, ended_at timestamp"
    )
    return frame.selectExpr(
        "id", "'completed' as status", "channel", "endpoint_id", "1L as num_attempts", "0 as retry_count",
        "leased_at - interval '1' hour as created_at", "cast(null as timestamp) as scheduled_at",
        "cast(null as timestamp) as expires_at", "leased_at", "ended_at", "cast(null as string) as ordering_key",
        "cast(null as bigint) as redrive_of", "cast(null as bigint) as replay_of",
        f"cast(null as {ATTEMPTS}) as attempts",
    )  # fmt: skip


def limits_json(concurrency: int | None = None, interval_ms: int = 0, count: int = 1) -> str:
    return json.dumps({"max_concurrency": concurrency, "release_interval_ms": interval_ms, "release_count": count})


def test_limits_are_those_of_the_time_of_each_lease(spark: SparkSession) -> None:
    messages = made(spark, [
        # Two at a time are allowed: the third that begins while two run is one too many.
        (1, "room-1", 0, 10), (2, "room-1", 1, 10), (3, "room-1", 2, 3), (4, "room-1", 10, 20), (5, "room-1", 10, 20),
        # Lowered to one at 15 s: what runs may go on, what begins must wait.
        (6, "room-1", 16, 17), (7, "room-1", 20, 21), (8, "room-1", 22, 23),
        # What began in one minute is still there in the next.
        (9, "room-1", 50, 70), (10, "room-1", 65, 66),
        # Two in any ten seconds: the window slides, and its edge is open.
        (11, "rate-2", 0, 1), (12, "rate-2", 9, 10), (13, "rate-2", 9.999999, 11),
        (14, "rate-2", 19, 20), (15, "rate-2", 21, 22),
        # It slides over the full minute too.
        (16, "rate-2", 55, 56), (17, "rate-2", 59, 60), (18, "rate-2", 61, 62), (19, "rate-2", 180, 181),
        # Before the rate was put on at 100 s it is nobody's business.
        (21, "late-3", 98, 99), (22, "late-3", 99, 100), (23, "late-3", 100, 101),
        (24, "late-3", 101, 102), (25, "late-3", 102, 103),
        # No limit is known: nothing is wrong.
        (31, "free-4", 0, 9), (32, "free-4", 0, 9), (33, "free-4", 0, 9),
        # The log is silent about it: it has had its limit for as long as the log goes back.
        (41, "still-5", 0, 9), (42, "still-5", 1, 9),
    ])  # fmt: skip
    events = event_frame(spark, [
        ("channel.created", "room-1", None, limits_json(2), -60),
        ("channel.changed", "room-1", limits_json(2), limits_json(1), 15),
        ("channel.created", "rate-2", None, limits_json(None, 10_000, 2), -60),
        ("channel.changed", "late-3", limits_json(), limits_json(None, 10_000, 2), 100),
    ])  # fmt: skip
    channels = spark.createDataFrame(
        [("still-5", 1, 0, 1, BEGIN + timedelta(days=1))],
        "name string, max_concurrency int, release_interval_ms bigint, release_count int, updated_at timestamp",
    )
    spans, tries = limits(events, channels), leases(slim(messages))
    assert spans is not None
    over = concurrency(tries, spans, None).unionByName(rate(tries, spans)).collect()
    told = {violation.message_id: violation for violation in over}
    assert len(told) == len(over)
    assert {i: row.kind for i, row in told.items()} == {
        **dict.fromkeys((3, 6, 10, 42), "concurrency"), **dict.fromkeys((13, 18, 25), "rate"),
    }  # fmt: skip
    assert told[3].detail == "3 in flight with this one, the limit was 2"
    assert told[10].detail == "2 in flight with this one, the limit was 1"
    assert (told[18].other_id, told[25].other_id) == (16, 23)


def test_audit_without_limits_queue_or_ledger_says_what_it_cannot_tell(spark: SparkSession) -> None:
    report = audited(spark, made(spark, [(1, "free-4", 0, 9), (9, "free-4", 1, 9)]), events=None)
    assert report.ok
    assert {check.kind for check in report.checks if check.skipped} == {"lost", "ended-and-live", "concurrency", "rate"}
    assert [check.kind for check in report.checks] == list(KINDS)
    assert report.notes[0].startswith("7 ids between 1 and 9 are not in this history")


@pytest.mark.parametrize(
    ("expiry", "told"),
    [
        ("0001-01-01T00:00:00Z", datetime.min.replace(tzinfo=UTC)),
        ("0000-12-31T23:00:00Z", "0000-12-31 23:00:00.000000Z"),
    ],
)
def test_the_story_of_a_violation_may_hold_a_time_that_python_has_no_wall_clock_for(
    spark: SparkSession, expiry: str, told: object
) -> None:
    messages = made(spark, [(1, "free-4", 0, 9)]).withColumn("expires_at", lit(expiry).cast("timestamp"))
    report = audited(spark, messages, events=None)
    assert found(report) == {"late": [1]}
    assert report.stories[1]["expires_at"] == told
    assert report.violations[0].at == BEGIN


def test_sentences_tell_times_of_utc_in_a_session_of_another_zone(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(BEGIN + timedelta(microseconds=1),), (None,)], "at timestamp")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        told = [row.told for row in rows.select(moment("at").alias("told")).collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert sorted(told) == ["2026-03-02 00:00:00.000001", "never"]


@pytest.mark.parametrize("lines", ['{"id": 1}\n{"id": null}\n', '{"id": 1}\n{"id": 2', '[{"id": 1},\n{"id": 2}]'])
def test_a_ledger_with_a_line_that_names_no_message_is_refused(spark: SparkSession, tmp_path: Path, lines: str) -> None:
    ledger = tmp_path / "ledger.json"
    ledger.write_text(lines)
    with pytest.raises(Exception, match=r"has a line without an id|Malformed records") as caught:
        read_ledger(spark, str(ledger)).collect()
    assert isinstance(explain(caught.value), MenzilError)
    ledger.write_text('{"id": 1}\n{"id": "2"}\n')
    assert sorted(row.id for row in read_ledger(spark, str(ledger)).collect()) == [1, 2]
