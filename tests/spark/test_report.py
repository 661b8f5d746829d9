"""The report as Spark counts it: figures that can be checked by hand, and the same as one process counts."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from menzil.spark.jobs.report import Figures, figures_of
from menzil.spark.jobs.report.frames import dead_letters, hours, incidents, prepared
from tests.spark.made_history import BEGIN, event_frame
from tests.unit.report.made import EVIL, GOAL, MONDAY, ROWS, TURNS, Given, at, counted, turns


def messages(spark: SparkSession, rows: list[Given]) -> DataFrame:
    return spark.createDataFrame(
        [
            (i, channel, status, at(created), at(scheduled), at(leased), at(ended), tries, error)
            for i, (channel, status, created, scheduled, leased, tries, ended, error) in enumerate(rows, 1)
        ],
        "id bigint, channel string, status string, created_at timestamp, scheduled_at timestamp, "
        "first_leased_at timestamp, ended_at timestamp, num_attempts bigint, last_error string",
    )


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> Figures:
    later = (MONDAY - BEGIN).total_seconds()
    events = event_frame(spark, [(kind, channel, None, None, later + seconds) for kind, channel, seconds in TURNS])
    return figures_of(messages(spark, ROWS), events, source=f"a lake {EVIL}", slo=GOAL)


def test_spark_and_one_process_count_the_same(made: Figures) -> None:
    alone = asdict(counted(ROWS, slo=GOAL, turns=turns(TURNS)))
    for name, value in asdict(made).items():
        if name not in ("source", "made_at"):
            assert in_utc(value) == in_utc(alone[name]), name


def in_utc(value: Any) -> Any:
    """Spark gives the wall clock of this machine, without a zone, and promises no order of equals."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, dict):
        return {key: in_utc(each) for key, each in value.items()}
    return sorted(map(in_utc, value), key=str) if isinstance(value, list) else value


def test_spark_compares_with_the_period_before(spark: SparkSession) -> None:
    start, end = MONDAY + timedelta(seconds=100), MONDAY + timedelta(seconds=200)
    found = figures_of(messages(spark, ROWS), source="a lake", start=start, end=end)
    assert (found.total["sent"], (found.before or {})["sent"]) == (2, 7)
    assert found.endpoints_before["billing"]["failed"] == 2


def test_totals_are_exact_and_cancelled_messages_count_for_nothing(made: Figures) -> None:
    total = made.total
    assert (total["sent"], total["completed"], total["failed"], total["expired"], total["cancelled"]) == (
        106,
        101,
        3,
        1,
        1,
    )
    assert total["within"] == 60 + 1  # n = 0 to 59 within a minute, and the scheduled one
    assert (total["retried"], total["tries"]) == (3, 100 + 3 + 3 + 2 + 1)


def test_latency_starts_at_the_schedule_and_percentiles_are_those_of_the_messages(made: Figures) -> None:
    endpoints = {row["channel"]: row for row in made.endpoints}
    assert endpoints["later"]["first_s"] == [2.0, 2.0, 2.0]
    assert endpoints["later"]["delivered_s"] == [5.0, 5.0, 5.0]
    p50, p90, p99 = endpoints["billing"]["delivered_s"]
    assert (p50, p90, p99) == (pytest.approx(50, abs=1), pytest.approx(90, abs=1), pytest.approx(99, abs=1))
    assert made.endpoint_count == 3
    assert [row["channel"] for row in made.slowest] == ["billing"]  # the others have too few to be judged
    assert made.noisiest[0]["channel"] == "billing"


def test_time_is_cut_into_buckets_and_hours_of_the_week(made: Figures) -> None:
    assert sum(row["sent"] for row in made.times) == 106
    assert all(row["bucket"] % made.width == 0 for row in made.times)
    hours = {(row["weekday"], row["hour"]): row for row in made.hours}
    assert hours[0, 9]["sent"] == 60 + 5
    assert hours[2, 9] == {"weekday": 2, "hour": 9, "sent": 1, "undelivered": 1}
    assert {row["tries"]: row["messages"] for row in made.retries} == {0: 2, 1: 101, 2: 1, 3: 2}


def test_hours_are_those_of_utc_in_a_session_of_another_zone(spark: SparkSession, made: Figures) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        found = [row.asDict() for row in hours(prepared(messages(spark, ROWS))).collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert in_utc(found) == in_utc(made.hours)
    assert len(found) > 1


def test_circuit_incident_lasts_from_its_opening_to_its_closing_whatever_probes_failed(made: Figures) -> None:
    assert made.incident_count == 2
    newest, older = made.incidents
    assert (newest["channel"], newest["closed_at"], newest["seconds"]) == ("later", None, None)
    assert (older["channel"], older["seconds"], older["openings"]) == ("billing", 90.0, 2)


def test_dead_letters_of_the_same_cause_are_one_line(spark: SparkSession, made: Figures) -> None:
    first = made.errors[0]
    assert (first["cause"], first["class"], first["messages"], first["sample_id"]) == (
        "HTTP 503 in # ms",
        "RETRYABLE",
        2,
        102,
    )
    assert first["sample"] == "[RETRYABLE] HTTP 503 in 1450 ms"
    uuid = "0b54a6f0-93a5-4c8e-8d2c-1f2a3b4c5d6e"
    errors = [
        f"[PERMANENT] order {uuid} of 'Ayşe' is gone since 2026-03-02T09:00:00.5Z",
        "[PERMANENT] order 11111111-2222-3333-4444-555555555555 of 'Bo' is gone since 2026-01-01 10:00+01:00",
        f'[PERMANENT] [DISABLE] HTTP 410: "{"x" * 3000}"',
        "deadbeef00112233 at 0x7ffeaabb0011: 12,5 of 3.000", "cafebabe99887766 at 0x7ffe11223344: 1 of 2",
        None,
    ]  # fmt: skip
    rows = [("c", "failed", 0.0, None, 1.0, 1, 2.0, error) for error in errors]
    found = {
        (row["cause"], row["class"]): row["messages"] for row in dead_letters(prepared(messages(spark, rows))).collect()
    }
    assert found[('order # of "..." is gone since #', "PERMANENT")] == 2
    assert found[("# at #: # of #", "RETRYABLE")] == 2
    assert found[("", "RETRYABLE")] == 1
    assert len(found) == 4


def test_incidents_of_an_empty_log_are_none(spark: SparkSession) -> None:
    assert incidents(event_frame(spark, [])).count() == 0
