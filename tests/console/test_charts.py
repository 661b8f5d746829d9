"""What charts and the page of a channel say in numbers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menzil.console import charts
from menzil.console.drawings import life
from menzil.console.pages.channel import behind
from menzil.console.words import span
from menzil.watch.states import CAP

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def curve(**gauges: float) -> dict[str, Any]:
    """Ten minutes in which everything stayed as it is."""
    counts = {"sent": 1, "completed": 1, "failed_tries": 0}
    points = [{"at": START + timedelta(minutes=place), **counts, **gauges} for place in range(10)]
    return {"points": points, "step_s": 60.0, "to": START + timedelta(minutes=10), "marks": []}


def ticks(drawn: str) -> list[str]:
    """The texts beside the axis, without the times below."""
    return [text for text in re.findall(r'<text [^>]*class="tick"[^>]*>([^<]*)<', drawn) if ":" not in text]


def test_axis_of_a_count_has_no_half_of_a_message() -> None:
    assert set(ticks(charts.flow(curve()))) == {"0", "1"}
    assert set(ticks(charts.gauge(curve(waiting=7), "waiting", "Waiting"))) == {"0", "5"}
    ages = charts.gauge(curve(oldest_s=1.0), "oldest_s", "Age of the oldest", span)
    assert "0.5 s" in ticks(ages), "seconds have halves"


@pytest.mark.parametrize(
    ("found", "number"),
    [
        ({"waiting": 10, "waiting_by_priority": {"0": 2, "9": 1}, "at_least": False}, 7),
        ({"waiting": 10, "waiting_by_priority": None, "at_least": False}, 10),
        ({"waiting": 3, "waiting_by_priority": {"0": 3}, "at_least": False}, 0),
        ({"waiting": 2, "waiting_by_priority": {"0": 3}, "at_least": False}, 0),  # one was cancelled
        ({"waiting": 10, "waiting_by_priority": {"0": 3}, "at_least": True}, 0),
        ({"waiting": CAP + 1, "waiting_by_priority": {"0": 3}, "at_least": False}, 0),
    ],
)
def test_messages_without_a_place_wait_behind_their_key(found: dict[str, Any], number: int) -> None:
    assert behind(found) == number


def test_picture_of_a_life_names_the_day_of_what_is_not_today() -> None:
    now = datetime.now(UTC)
    message = {"id": 7, "created_at": now - timedelta(days=3), "ended_at": None, "status": "pending"}
    due = now + timedelta(days=2)
    told = str(life([{"message_id": 7, "at": due, "what": "scheduled", "duration_ms": None}], message, now))
    assert f"sent {message['created_at']:%d %b %Y %H:%M:%S}" in told
    assert f"due {due:%d %b %Y %H:%M:%S}" in told
