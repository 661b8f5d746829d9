"""The report: figures that can be checked by hand, and a page that is safe to open."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest
from pyspark.sql import DataFrame, SparkSession

from menzil.spark.jobs.report import Figures, Slo, figures_of, page
from menzil.spark.jobs.report.charts import svg
from menzil.spark.jobs.report.frames import dead_letters, incidents, prepared
from menzil.spark.jobs.report.job import BUCKETS, ENDPOINTS, bucket_width
from menzil.spark.jobs.report.tables import percent
from tests.spark.made_history import event_frame

pytestmark = pytest.mark.usefixtures("small")

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
EVIL = """<script>alert(1)</script>"><img src=x onerror=alert(2)>&'"""


Given = tuple[str, str, float, float | None, float | None, int, float, str | None]


def messages(spark: SparkSession, rows: list[Given]) -> DataFrame:
    """channel, status, created, scheduled and first leased in seconds, tries, ended in seconds, error."""

    def at(seconds: float | None) -> datetime | None:
        return None if seconds is None else MONDAY + timedelta(seconds=seconds)

    return spark.createDataFrame(
        [
            (i, channel, status, at(created), at(scheduled), at(leased), at(ended), tries, error)
            for i, (channel, status, created, scheduled, leased, tries, ended, error) in enumerate(rows, 1)
        ],
        "id bigint, channel string, status string, created_at timestamp, scheduled_at timestamp, "
        "first_leased_at timestamp, ended_at timestamp, num_attempts bigint, last_error string",
    )


@pytest.fixture(scope="module")
def made(spark: SparkSession, small: None) -> Figures:
    rows: list[Given] = [
        ("billing", "completed", n * 60.0, None, n * 60.0 + 1, 1, n * 60.0 + 1 + n, None) for n in range(100)
    ]
    rows += [
        ("billing", "failed", 10.0, None, 11.0, 3, 500.0, "[RETRYABLE] HTTP 503 in 12 ms"),
        ("billing", "failed", 11.0, None, 12.0, 3, 600.0, "[RETRYABLE] HTTP 503 in 1450 ms"),
        ("billing", "cancelled", 12.0, None, None, 0, 13.0, None),
        ("billing", "expired", 12.0, None, None, 0, 73.0, None),
        # Sent long before its time: its clock starts at the schedule.
        ("later", "completed", 0.0, 3000.0, 3002.0, 2, 3005.0, None),
        (EVIL, "failed", 86_400.0 * 2, None, 86_400.0 * 2 + 1, 1, 86_400.0 * 2 + 2, f"[PERMANENT] {EVIL} 9"),
    ]
    events = event_frame(spark, [
        ("circuit.opened", "billing", None, None, 40_000), ("circuit.half_open", "billing", None, None, 40_030),
        ("circuit.opened", "billing", None, None, 40_031), ("circuit.closed", "billing", None, None, 40_090),
        ("circuit.opened", "later", None, None, 50_000),
    ])  # fmt: skip
    return figures_of(messages(spark, rows), events, source=f"a lake {EVIL}", slo=Slo(60, 0.9))


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


class Tags(HTMLParser):
    """What a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_page_needs_no_network_runs_no_script_and_shows_hostile_names_as_text(made: Figures) -> None:
    html = page(made)
    seen = Tags()
    seen.feed(html)
    names = {tag for tag, _ in seen.tags}
    assert names & {"script", "img", "link", "iframe", "object", "base", "form", "a"} == set()
    assert not any(
        name.startswith("on") or name in ("src", "href") for _, attributes in seen.tags for name in attributes
    )
    assert "url(" not in html
    assert "@import" not in html
    assert not re.search(r"https?://", html)
    assert html.count("&lt;script&gt;") >= 3  # as endpoint, as error, as source
    assert "default-src 'none'" in html


def test_page_says_its_window_its_source_and_its_goal(made: Figures) -> None:
    html = page(made)
    assert "02 Mar 2026 09:00" in html
    assert "04 Mar 2026 09:00" in html
    assert "from a lake " in html
    assert "Goal: 90 % in 1 min" in html
    assert "missed by" in html
    assert "prefers-color-scheme:dark" in html


def test_empty_history_is_a_page_too(spark: SparkSession) -> None:
    empty = figures_of(messages(spark, []), source="a lake")
    assert "There is no ended message in this window." in page(empty)


@pytest.mark.parametrize("seconds", [0, 59, 3600, 86_400 * 7, 86_400 * 365, 86_400 * 3650])
def test_a_page_never_has_more_buckets_than_one_can_see(seconds: int) -> None:
    assert seconds / bucket_width(seconds) <= BUCKETS


def test_what_is_not_everything_is_never_called_a_hundred_percent() -> None:
    assert percent(1.0) == "100 %"
    assert percent(0.999999) == "99.99 %"
    assert percent(0.5) == "50 %"
    assert percent(None) == "–"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0123, "12.3 ms"), (1.5, "1.5 s"), (90, "1.5 min"), (7200, "2 h"), (259_200, "3 d"), (None, "–")],
)
def test_latency_is_shown_in_the_unit_a_person_would_choose(value: float | None, shown: str) -> None:
    assert svg.seconds(value) == shown


def test_many_endpoints_do_not_make_the_page_grow(spark: SparkSession) -> None:
    rows = [(f"endpoint-{n % 300}", "completed", float(n), None, n + 0.1, 1, n + 0.2, None) for n in range(900)]
    made = figures_of(messages(spark, rows), source="a lake")
    assert made.endpoint_count == 300
    assert len(made.endpoints) == len(made.series) == ENDPOINTS
    assert made.incident_count is None
    assert "260 quieter ones are not shown" in page(made)


def test_incidents_of_an_empty_log_are_none(spark: SparkSession) -> None:
    assert incidents(event_frame(spark, [])).count() == 0
