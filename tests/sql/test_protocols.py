"""Protocols that packages bring along: registered with rules, then endpoints like any other."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from menzil.deliver.registry import BUILT_IN
from tests.sql.queue import Queue

RULES = [
    {"path": "topic", "kind": "text", "minimum": 1, "maximum": 249},
    {"path": "acks", "kind": "choice", "choices": ["0", "1", "all"]},
    {"path": "auth", "kind": "object"},
    {"path": "auth.password", "kind": "secret", "minimum": 1, "maximum": 100},
]


def test_a_registered_protocol_has_endpoints_with_checked_configs_and_hidden_secrets(queue: Queue) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="no protocol named 'log'"):
        queue.call("create_endpoint", "orders", "log", {"topic": "orders"})
    queue.call("register_protocol", "log", json.dumps(RULES))
    assert queue.call("known_protocols") == [*sorted(BUILT_IN), "log"]
    queue.call("create_endpoint", "orders", "log", {"topic": "orders", "auth": {"password": "canary"}})
    assert queue.one("select config from menzil.endpoints")["auth"] == {"password": {"$secret": True}}
    (row,) = queue.rows("delivery_configs", ["orders"])
    assert (row.protocol, row.config["auth"]["password"]) == ("log", "canary")
    for wrong in ({"topics": "x"}, {"topic": ""}, {"acks": "2"}):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            queue.call("alter_endpoint", "orders", wrong)


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("http", []),
        ("nats", []),
        ("Upper", []),
        ("log", {}),
        ("log", [{"path": "a", "kind": "what"}]),
        ("log", [{"kind": "text"}]),
        ("log", [{"path": "a", "kind": "text"}]),
        ("log", [{"path": "a", "kind": "boolean", "more": 1}]),
        ("log", [1]),
    ],
)
def test_rules_that_are_none_are_refused(queue: Queue, name: str, rules: Any) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        queue.call("register_protocol", name, json.dumps(rules))
    assert queue.call("known_protocols") == sorted(BUILT_IN)
