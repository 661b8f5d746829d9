"""The circuit as bands between two times, tries by class, and what a retry policy means in seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from menzil.watch.endpoints import bands, kind, waits

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
START = NOW - timedelta(hours=6)
CALM: dict[str, Any] = {"circuit_state": "closed", "waits_until": None, "last_failure_at": None}
RULES = {"retry_base_delay": "10", "retry_max_delay": "300", "retry_increment": "30", "default_max_retries": "4"}


def told(*events: tuple[str, int], fares: dict[str, Any] = CALM, cut: bool = False) -> list[tuple[str, int]]:
    """The bands as (state, minutes)."""
    rows = [{"what": what, "at": NOW - timedelta(minutes=ago)} for what, ago in events]
    found = bands(rows, START, NOW, fares, cut=cut)
    assert found[0]["from"] == START
    assert found[-1]["to"] == NOW
    assert all(one["to"] == after["from"] for one, after in pairwise(found))
    return [(one["state"], round((one["to"] - one["from"]).total_seconds() / 60)) for one in found]


def test_circuit_that_never_opened_is_one_band() -> None:
    assert told() == [("closed", 360)]
    assert told(("endpoint.altered", 30)) == [("closed", 360)]


def test_circuit_that_opened_and_closed_has_a_band_for_each() -> None:
    found = told(("circuit.opened", 60), ("circuit.half_open", 40), ("circuit.closed", 39))
    assert found == [("closed", 300), ("open", 20), ("half_open", 1), ("closed", 39)]


def test_circuit_that_opened_before_the_window_begins_open() -> None:
    assert told(("circuit.opened", 600)) == [("open", 360)]
    assert told(("circuit.opened", 600), ("circuit.closed", 60)) == [("open", 300), ("closed", 60)]


def test_circuit_that_an_operator_reset_is_closed_from_then_on() -> None:
    assert told(("circuit.opened", 120), ("circuit.reset", 60)) == [("closed", 240), ("open", 60), ("closed", 60)]


def test_what_was_before_events_that_are_not_read_is_not_called_closed() -> None:
    down = [("circuit.half_open", 61), ("circuit.opened", 60)]
    assert told(*down, cut=True) == [("unknown", 299), ("half_open", 1), ("open", 60)]
    assert told(*down) == [("open", 299), ("half_open", 1), ("open", 60)], "the first event says what was before it"
    assert told(("endpoint.altered", 90), *down, cut=True)[:2] == [("unknown", 270), ("open", 29)]
    assert told(("circuit.opened", 600), *down, cut=True)[0] == ("open", 299)


def test_circuit_whose_events_are_cleaned_up_has_the_state_it_has() -> None:
    assert told(fares={**CALM, "circuit_state": "open"}) == [("open", 360)]


def test_endpoint_that_rests_has_a_band_since_its_last_failure() -> None:
    rest = {**CALM, "waits_until": NOW + timedelta(minutes=5), "last_failure_at": NOW - timedelta(minutes=2)}
    assert told(fares=rest) == [("closed", 358), ("rest", 2)]
    assert told(fares={**rest, "waits_until": NOW - timedelta(minutes=1)}) == [("closed", 360)]


@pytest.mark.parametrize(
    ("code", "outcome", "said"),
    [(200, "completed", "2xx"), (404, "failed", "4xx"), (503, "failed", "5xx"), (None, "failed", "no answer"),
     (None, "completed", "2xx"), (999, "failed", "no answer")],
)  # fmt: skip
def test_tries_are_told_apart_by_status(code: int | None, outcome: str, said: str) -> None:
    assert kind({"status_code": code, "outcome": outcome}) == said


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [
        (None, [10, 20, 40, 80]),
        ({"backoff": "fixed", "base_delay_seconds": 7, "max_retries": 3}, [7, 7, 7]),
        ({"backoff": "fixed", "base_delay_seconds": 3600, "max_retries": 2}, [3600, 3600]),
        ({"backoff": "linear"}, [10, 40, 70, 100]),
        ({"max_retries": 6, "max_delay_seconds": 100}, [10, 20, 40, 80, 100, 100]),
        ({"max_retries": 0}, []),
    ],
)
def test_policy_is_told_in_seconds(policy: dict[str, Any] | None, seconds: list[float]) -> None:
    found = waits(policy, RULES)
    assert [one["wait_s"] for one in found["waits"]] == seconds
    assert found["waits"] == [] or found["waits"][-1]["after_s"] == sum(seconds)
