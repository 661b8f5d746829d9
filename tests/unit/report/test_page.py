"""The page: words first, safe to open, legible whatever the history is. Without Spark and without a database."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from menzil.report import Figures, Slo, page, troubles
from menzil.report.charts import svg
from menzil.report.charts.frame import WIDE, ceiling
from menzil.report.charts.times import bands, volume
from menzil.report.figures import BUCKETS, ENDPOINTS, bucket_width
from menzil.report.words import percent
from tests.unit.report.made import EVIL, GOAL, ROWS, TURNS, Given, counted, turns


@pytest.fixture(scope="module")
def made() -> Figures:
    return counted(ROWS, source=f"a lake {EVIL}", slo=GOAL, turns=turns(TURNS))


def good(channel: str, number: int, seconds: float = 1.0) -> list[Given]:
    return [(channel, "completed", n * 60.0, None, n * 60.0, 1, n * 60.0 + seconds, None) for n in range(number)]


def dead(channel: str, number: int, error: str) -> list[Given]:
    return [(channel, "failed", n * 60.0, None, n * 60.0, 3, n * 60.0 + 9, error) for n in range(number)]


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
    for words in ("02 Mar 2026 09:00", "04 Mar 2026 09:00", "from a lake ", "Goal: 90 % in 1 min", "missed by"):
        assert words in html
    assert "prefers-color-scheme:dark" in html


def test_the_page_begins_with_what_is_wrong_and_the_command_that_redrives() -> None:
    made = counted(good("fine", 50) + dead("crm's", 30, "[RETRYABLE] HTTP 503 in 7 ms"), slo=Slo(60, 0.99))
    said = [trouble.sentence for trouble in troubles(made)]
    assert said[0] == "crm's delivered nothing: 30 messages, 30 dead letters."
    assert said[1].startswith("30 dead letters of crm's: HTTP 503 in # ms. The last was at ")
    assert said[2] == "The goal was missed: 62.5 % were delivered within 1 min, not 99 %."
    command = """menzil dlq redrive --endpoint 'crm'"'"'s' --cause 'HTTP 503 in # ms' --yes"""
    assert troubles(made)[1].command == command
    html = page(made)
    assert html.index("What is wrong") < html.index("<strong>")
    assert html.count("menzil dlq redrive --endpoint") == 2  # in the words, and beside the cause


def test_dead_letters_that_were_redriven_are_no_longer_offered() -> None:
    rows = dead("crm", 3, "HTTP 410") + good("fine", 9)
    (letters,) = [
        each for each in troubles(counted(rows, redrivable={"HTTP 410": 2})) if "dead letters of" in each.sentence
    ]
    assert letters.sentence.endswith("2 of them can still be redriven.")
    assert letters.command == "menzil dlq redrive --endpoint crm --cause 'HTTP 410' --yes"
    gone = counted(rows, redrivable={})
    assert not any(each.command for each in troubles(gone))
    assert "menzil dlq redrive" not in page(gone)


def test_a_page_without_trouble_says_so() -> None:
    made = counted(good("fine", 50))
    assert troubles(made) == []
    assert "Nothing is wrong. All 50 messages were delivered, 100 % within 1 min." in page(made)


def test_endpoints_are_sorted_by_trouble() -> None:
    slow = good("slow", 30, 600.0)
    made = counted(good("busy", 90) + slow + dead("few", 1, "x") + dead("silent", 2, "x") + good("few", 99))
    assert [row["channel"] for row in made.endpoints] == ["silent", "few", "slow", "busy"]
    assert "The most troubled first." in page(made)


def test_a_report_with_a_beginning_compares_with_the_period_before() -> None:
    before = good("crm", 99, 0.1) + dead("crm", 1, "x")
    made = counted(good("crm", 30, 9.0) + dead("crm", 30, "x"), before)
    assert (made.before or {})["sent"] == 100
    said = [trouble.sentence for trouble in troubles(made)]
    assert "crm delivered 50 %: 30 of 60 not delivered. In the period before it delivered 99 %." in said
    assert "Deliveries are slower: 99 % took up to 9 s, in the period before 100 ms." in said
    assert "before: 99 %" in page(made)
    assert "before: " not in page(counted(good("crm", 30)))


def test_numbers_agree_with_their_words() -> None:
    html = page(counted(good("only", 1), turns=turns([("circuit.opened", "only", 0)])))
    text = re.sub(r"<[^>]+>", " ", html)
    assert "to 1 endpoint " in text
    assert "1 try in all" in text
    assert "Once an endpoint failed so often" in text
    assert not re.search(r"(?<![\d.,])1 (endpoints|messages|tries|letters|times|causes|dead letters)\b", html)


def test_a_bucket_without_neighbours_is_a_dot() -> None:
    rows = [{"bucket": at, "sent": 1, "completed": 1, "delivered_s": [1.0, 2.0, 3.0]} for at in (0, 60, 600)]
    chart = bands(WIDE, rows, 60, "delivered_s")
    assert chart.count("<circle") == 1
    assert chart.count('class="p50"') == 1  # the two that stand side by side
    assert "<circle" in page(counted(good("only", 1)))


def test_one_spike_does_not_flatten_the_rest() -> None:
    assert ceiling([10, 12, 9, 11, 10, 12, 10, 11, 5000]) < 50
    assert ceiling([1, 5000]) == 5000  # nothing is usual among two
    rows = [{"bucket": n * 60, "sent": 10, "completed": 10} for n in range(20)]
    rows[7] = {"bucket": 420, "sent": 5000, "completed": 5000}
    chart = volume(WIDE, rows, 60)
    assert "▲ 5 k" in chart
    heights = [float(found) for found in re.findall(r'height="([\d.]+)" class="good"', chart)]
    assert min(heights) > 50


def test_a_phone_gets_charts_of_its_size_and_tables_as_lists(made: Figures) -> None:
    html = page(made)
    assert html.count('class="on-narrow"') == html.count('class="on-wide"') >= 4
    assert 'viewBox="0 0 400 220"' in html
    assert 'data-label="delivered"' in html
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in html


def test_empty_history_is_a_page_too() -> None:
    assert "There is no ended message in this window." in page(counted([]))


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


def test_many_endpoints_do_not_make_the_page_grow() -> None:
    rows: list[Given] = [
        (f"endpoint-{n % 300}", "completed", float(n), None, n + 0.1, 1, n + 0.2, None) for n in range(900)
    ]
    made = counted(rows)
    assert made.endpoint_count == 300
    assert len(made.endpoints) == len(made.series) == ENDPOINTS
    assert made.incident_count is None
    assert "260 with less trouble are not shown" in page(made)
