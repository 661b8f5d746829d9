"""What people are told of a plan: how far, how long still, and the commands that fit its state."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menzil.watch import plans

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def row(**changes: Any) -> dict[str, Any]:
    """A running redrive, as the view has it."""
    return {
        "id": 7,
        "kind": "redrive",
        "filter": {"channel": "billing"},
        "rate": None,
        "status": "running",
        "counted": 200,
        "counted_exactly": True,
        "done": 50,
        "skipped": 10,
        "taken_back": 0,
        "last_due_at": None,
    } | changes


@pytest.mark.parametrize(
    ("changes", "remaining", "percent"),
    [
        ({}, 140, 30),
        ({"status": "draft", "done": 0, "skipped": 0}, 200, 0),
        ({"counted": 0, "done": 0, "skipped": 0}, 0, 0),
        ({"done": 500, "counted_exactly": False}, 0, 99),  # more than was estimated, and not at its end
        ({"status": "done", "done": 190}, 0, 100),
        ({"status": "stopped"}, 0, 30),
    ],
)
def test_the_way_left_is_never_negative_and_only_a_plan_that_is_done_is_at_a_hundred(
    changes: dict[str, Any], remaining: int, percent: int
) -> None:
    found = plans.told(row(**changes), NOW)
    assert (found["remaining"], found["percent"]) == (remaining, percent)


def test_the_time_left_counts_what_is_scheduled_and_what_is_not_made_yet() -> None:
    assert plans.told(row(), NOW)["seconds_left"] is None
    assert plans.told(row(rate=10.0), NOW)["seconds_left"] == 14.0
    ahead = plans.told(row(rate=10.0, last_due_at=NOW + timedelta(seconds=30)), NOW)
    assert ahead["seconds_left"] == 44.0
    past = plans.told(row(rate=10.0, last_due_at=NOW - timedelta(hours=1)), NOW)
    assert past["seconds_left"] == 14.0
    assert plans.told(row(rate=10.0, status="done"), NOW)["seconds_left"] is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "Redrives 200 dead letters of billing."),
        ({"counted": 1}, "Redrives 1 dead letter of billing."),
        (
            {"counted": 12000, "counted_exactly": False, "rate": 0.5},
            "Redrives about 12,000 dead letters of billing at 0.5 per second.",
        ),
        (
            {"filter": {"all": True, "cause_hash": "0123456789ab"}},
            "Redrives 200 dead letters of all channels of cause 0123456789ab.",
        ),
        (
            {"kind": "replay", "filter": {"channel": "a", "status": "failed", "since": "2026-01-01T00:00:00.000000Z"}},
            "Replays 200 ended messages of a that ended as failed since 2026-01-01T00:00:00.000000Z.",
        ),
        ({"kind": "cancel", "filter": {"ids": [1, 2]}}, "Cancels 200 waiting messages."),
    ],
)
def test_a_sentence_says_what_a_plan_is_about(changes: dict[str, Any], sentence: str) -> None:
    assert plans.sentence(row(**changes)) == sentence


@pytest.mark.parametrize(
    ("changes", "offered"),
    [
        ({"status": "draft", "done": 0}, {"run", "stop", "again"}),
        ({}, {"pause", "stop", "take_back", "again"}),
        ({"status": "paused"}, {"run", "stop", "take_back", "again"}),
        ({"status": "done"}, {"take_back", "again"}),
        ({"status": "stopped", "taken_back": 50}, {"again"}),
        ({"kind": "cancel"}, {"pause", "stop", "again"}),
    ],
)
def test_only_commands_that_fit_are_offered(changes: dict[str, Any], offered: set[str]) -> None:
    assert set(plans.commands(row(**changes))) == offered


def test_a_hostile_name_stays_one_word_in_the_command_and_one_text_in_sql() -> None:
    name = 'x\'; drop table menzil.message; -- $(reboot) `id` "q"'
    made = plans.creation("redrive", {"channel": name}, 2.5)
    assert shlex.split(made["cli"]) == ["menzil", "plan", "create", "redrive", "--channel", name, "--rate", "2.5"]
    assert made["sql"].count("''") == 1
    assert made["sql"].endswith("', 2.5);")
