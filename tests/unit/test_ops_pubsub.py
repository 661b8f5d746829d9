"""Ops about events without a database: what is refused before anything is sent, and how values are written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg.types.json import Jsonb

import menzil
from menzil.ops import pubsub

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
OPTIONS: dict[str, Any] = {
    "priority": 5,
    "scheduled_at": NOON,
    "expires_in": 60,
    "ordering_key": 'k"',
    "idempotency_key": "i",
    "correlation_id": "550e8400-e29b-41d4-a716-446655440000",
    "headers": {"a": "b"},
    "metadata": {"c": 1},
}


def test_options_travel_in_the_order_of_the_statement() -> None:
    op = pubsub.publish("placed", [1], **OPTIONS)
    at, correlation = "2026-01-02T12:00:00+00:00", OPTIONS["correlation_id"]
    assert op.params == (
        "placed", "[1]", "5", at, None, "i", correlation, None, "60.0", 'k"', '{"a":"b"}', '{"c":1}',
    )  # fmt: skip
    assert op.text.count("%s") == len(op.params)


def test_a_batch_is_written_as_objects_with_the_delays_apart() -> None:
    (op,) = pubsub.publish_batch([{"event_type": 'pl"aced', "payload": {"n": "é"}, **OPTIONS}])
    written, delays, lives = op.params
    assert isinstance(written, str)
    (event,) = [json.loads(written[2:-2].replace('\\"', '"').replace("\\\\", "\\"))]
    assert event == {
        "event_type": 'pl"aced',
        "payload": {"n": "é"},
        "priority": 5,
        "scheduled_at": "2026-01-02T12:00:00+00:00",
        "idempotency_key": "i",
        "correlation_id": OPTIONS["correlation_id"],
        "ordering_key": 'k"',
        "headers": {"a": "b"},
        "metadata": {"c": 1},
    }
    assert (delays, lives) == ("{NULL}", "{60.0}")


def test_a_long_batch_is_several_statements() -> None:
    event = {"event_type": "placed", "payload": 1}
    made = pubsub.publish_batch([event] * 25_000)
    assert [str(op.params[1]).count(",") + 1 for op in made] == [10_000, 10_000, 5_000]
    assert pubsub.publish_batch([]) == []


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({"payload": 1}, menzil.MissingValueError),
        ({"event_type": "placed"}, menzil.MissingValueError),
        ({"event_type": None, "payload": 1}, menzil.MissingValueError),
        ({"event_type": "placed", "payload": None}, menzil.MissingValueError),
        ({"event_type": "placed", "payload": 1, "priority": None}, menzil.MissingValueError),
        ({"event_type": "placed", "payload": b"raw"}, menzil.UsageError),
        ({"event_type": "placed", "payload": 1, "prio": 1}, menzil.UsageError),
        ({"event_type": "placed", "payload": 1, "channel": "a"}, menzil.UsageError),
        ({"event_type": "placed", "payload": 1, "delay": 1, "scheduled_at": NOON}, menzil.UsageError),
        ({"event_type": "placed", "payload": 1, "expires_in": 1, "expires_at": NOON}, menzil.UsageError),
        ({"event_type": "placed", "payload": 1, "delay": -1}, menzil.InvalidValueError),
        ({"event_type": "placed", "payload": 1, "scheduled_at": datetime(2026, 1, 1)}, menzil.InvalidValueError),
        ({"event_type": "placed", "payload": {1, 2}}, menzil.InvalidValueError),
        ({"event_type": "pla\x00ced", "payload": 1}, menzil.InvalidValueError),
        ({"event_type": "placed", "payload": 1, "correlation_id": "x"}, menzil.InvalidValueError),
        ("placed", menzil.UsageError),
    ],
)
def test_a_bad_event_is_refused_before_anything_is_sent(event: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        pubsub.publish_batch([{"event_type": "placed", "payload": 1}, event])
    if isinstance(event, dict) and event.keys() >= {"event_type", "payload"} and "channel" not in event:
        with pytest.raises(error):
            pubsub.publish(event.pop("event_type"), event.pop("payload"), **event)


def test_a_subscription_ends_by_id_or_by_names() -> None:
    assert pubsub.unsubscribe(7).params == ("7",)
    assert pubsub.unsubscribe("placed", "hook").params == ("placed", "hook")
    with pytest.raises(menzil.MissingValueError):
        pubsub.unsubscribe("placed")
    with pytest.raises(menzil.InvalidValueError):
        pubsub.unsubscribe(7, "hook")


def test_a_json_null_is_said_out_loud() -> None:
    assert pubsub.publish("placed", Jsonb(None)).params[1] == "null"


def test_a_schema_may_be_true_or_false() -> None:
    assert pubsub.create_event_type("placed", schema=False).params == ("placed", None, "false")
