"""A few words for what holds a channel, and what a change of its limits would do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menzil.ops.pulse import BOUNDS_MS
from menzil.watch.curves import percentile, summed
from menzil.watch.states import number, predict, sentence, span

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def row(**given: Any) -> dict[str, Any]:
    plain = {
        "held_by": None,
        "held_since": None,
        "held_until": None,
        "held_actor": None,
        "in_flight": 0,
        "waiting": 0,
        "scheduled": 0,
    }
    return plain | {"max_concurrency": None, "rate_used": None, "rate_limit": None, "workers": 1} | given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "idle"),
        ({"waiting": 3}, "waits"),
        ({"waiting": 3, "in_flight": 1}, "at work"),
        ({"waiting": 3, "workers": 0}, "no worker serves it"),
        ({"in_flight": 3, "workers": 0}, "in flight, no worker serves it"),
        ({"waiting": 3, "workers": None}, "waits"),
        ({"workers": 0}, "idle"),
        ({"scheduled": 12_000}, "10,000+ for later"),
        ({"scheduled": 2, "in_flight": 1}, "at work"),
        ({"held_by": "paused", "held_since": NOW - timedelta(hours=2), "held_actor": "ada"}, "paused by ada 2 h ago"),
        ({"held_by": "paused"}, "paused; the event log does not say by whom"),
        ({"held_by": "disabled", "held_actor": "ada"}, "disabled by ada"),
        ({"held_by": "disabled"}, "disabled; the event log does not say by whom"),
        ({"held_by": "released", "held_since": NOW - timedelta(hours=3)}, "released 3 h ago, drains"),
        ({"held_by": "circuit", "held_until": NOW + timedelta(seconds=12)}, "circuit open, probe in 12 s"),
        ({"held_by": "circuit", "held_until": NOW - timedelta(seconds=1)}, "circuit open, probe due"),
        ({"held_by": "circuit"}, "circuit half open, probing"),
        ({"held_by": "rest", "held_until": NOW + timedelta(days=3)}, "rests for 3 d"),
        ({"held_by": "concurrency", "in_flight": 5, "max_concurrency": 5}, "full 5/5"),
        ({"held_by": "rate", "held_until": NOW + timedelta(seconds=3)}, "at its rate, next in 3 s"),
        ({"held_by": "rate"}, "at its rate"),
    ],
)  # fmt: skip
def test_a_state_is_a_few_words(given: dict[str, Any], said: str) -> None:
    assert sentence(row(**given), NOW) == said


@pytest.mark.parametrize(
    ("flying", "old", "new", "said"),
    [
        (3, 5, 2, "5 → 2: 3 in flight go on, and nothing starts until 2 of them have finished."),
        (2, 5, 2, "5 → 2: 2 in flight go on, and the next starts when one has finished."),
        (3, 5, 8, "5 → 8: 5 more may start at once."),
        (0, None, 1, "no limit → 1: 1 more may start at once."),
        (3, 5, None, "5 → no limit: as many start as workers take."),
    ],
)
def test_a_change_of_concurrency_is_predicted(flying: int, old: int | None, new: int | None, said: str) -> None:
    assert predict(row(in_flight=flying, max_concurrency=old), max_concurrency=new) == [said]


def test_a_pause_and_a_rate_are_predicted() -> None:
    assert predict(row(in_flight=2, waiting=10_001), paused=True) == ["2 in flight will finish; 10,000+ stay and wait."]
    assert "nothing starts" in predict(row(rate_used=5), release_count=5)[0]
    assert predict(row(rate_used=3), release_count=5) == ["2 more may start in the window that runs."]
    assert predict(row(rate_used=None), release_count=5) == predict(row()) == []


def test_counts_stop_at_the_cap() -> None:
    assert [number(0), number(10_000), number(10_001)] == ["0", "10,000", "10,000+"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(-1, "0 s"), (0.4, "0 s"), (89, "89 s"), (90, "2 min"), (7_199, "120 min"), (7_200, "2 h")]
)
def test_a_span_has_one_unit(seconds: float, said: str) -> None:
    assert span(timedelta(seconds=seconds)) == said


def histogram(**counts: int) -> list[int]:
    found = [0] * (len(BOUNDS_MS) + 1)
    for place, number_of in counts.items():
        found[int(place[1:])] = number_of
    return found


def test_a_percentile_lies_within_its_counter() -> None:
    assert percentile(None, 0.95) is None
    assert percentile(histogram(), 0.95) is None
    assert percentile(histogram(c0=100), 0.5) == 2.5
    assert percentile(histogram(c0=50, c2=50), 0.95) == pytest.approx(92.5)
    assert percentile(histogram(c11=1), 0.5) == BOUNDS_MS[-1]
    assert percentile(histogram(c0=1, c11=99), 0.95) == BOUNDS_MS[-1]
    for share in (0.01, 0.5, 0.95, 1.0):
        value = percentile(histogram(c4=7), share)
        assert value is not None
        assert BOUNDS_MS[3] <= value <= BOUNDS_MS[4]


def test_histograms_add_up() -> None:
    assert summed([histogram(c0=1, c11=2), None, histogram(c0=3)]) == histogram(c0=4, c11=2)
