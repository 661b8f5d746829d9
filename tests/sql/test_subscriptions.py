"""Subscriptions: who gets a copy of which events, and how that ends."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.sql.queue import Queue

HTTP = {"url": "https://example.com/"}


@pytest.fixture
def events(queue: Queue) -> Queue:
    """One event type, two channels, one endpoint."""
    queue.call("create_event_type", "order.placed")
    queue.call("channel_set", "audit")
    queue.call("create_endpoint", "hook", "http", HTTP)
    return queue


def subscribed(queue: Queue) -> list[Any]:
    return queue.all("select id, event_type, endpoint_name, filter from menzil.subscriptions order by id")


def test_endpoints_and_channels_are_listed_with_what_they_want(events: Queue) -> None:
    one = events.call("subscribe", "order.placed", "hook")
    two = events.call("subscribe", "order.placed", "audit", {"country": "TR"})
    assert subscribed(events) == [
        (one, "order.placed", "hook", None),
        (two, "order.placed", "audit", {"country": "TR"}),
    ]


def test_the_same_subscription_twice_is_one(events: Queue) -> None:
    first = events.call("subscribe", "order.placed", "hook", {"n": 1, "of": 2})
    assert events.call("subscribe", "order.placed", "hook", {"of": 2, "n": 1.0}) == first
    everything = events.call("subscribe", "order.placed", "hook")
    assert events.call("subscribe", "order.placed", "hook", None) == everything != first
    assert len(subscribed(events)) == 2
    created = "select count(*) from menzil.event_log where event_type = 'subscription.created'"
    assert events.one(created) == 2


def test_a_filter_longer_than_an_index_entry_is_kept(events: Queue) -> None:
    long = {"numbers": list(range(1500))}
    first = events.call("subscribe", "order.placed", "hook", long)
    assert events.call("subscribe", "order.placed", "hook", long) == first


def test_a_subscription_ends_by_its_id_or_by_its_names(events: Queue) -> None:
    one = events.call("subscribe", "order.placed", "hook")
    for country in ("TR", "DE"):
        events.call("subscribe", "order.placed", "audit", {"country": country})
    assert events.call("unsubscribe", one) == 1
    assert events.call("unsubscribe", "order.placed", "audit") == 2
    assert events.call("unsubscribe", "order.placed", "audit") == 0
    assert subscribed(events) == []
    ended = events.all(
        """select old_value ->> 'endpoint_name' from menzil.event_log
            where event_type = 'subscription.dropped' order by id"""
    )
    assert [row[0] for row in ended] == ["hook", "audit", "audit"]
    with pytest.raises(psycopg.errors.UndefinedObject):
        events.call("unsubscribe", one)


def test_a_dropped_endpoint_has_no_subscriptions_left_and_its_name_starts_anew(events: Queue) -> None:
    events.call("subscribe", "order.placed", "hook")
    events.call("drop_endpoint", "hook")
    assert subscribed(events) == []
    assert events.one("select count(*) from menzil.subscription") == 0
    events.call("create_endpoint", "hook", "http", HTTP)
    assert events.call("publish", "order.placed", {}) == 0


def test_a_released_channel_gets_no_copies_and_loses_its_subscriptions_with_its_last_message(events: Queue) -> None:
    events.call("subscribe", "order.placed", "audit")
    events.call("subscribe", "order.placed", "work")
    assert events.call("publish", "order.placed", {}) == 2
    events.call("channel_release", "audit")
    assert [row.endpoint_name for row in subscribed(events)] == ["work"]
    assert events.call("publish", "order.placed", {}) == 1
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        events.call("subscribe", "order.placed", "audit")
    events.complete(*events.dequeue(10, ["audit"]))
    events.conn.execute("select menzil.maintain()")
    assert events.one("select count(*) from menzil.subscription") == 1


def test_a_disabled_endpoint_may_be_subscribed_for_later(events: Queue) -> None:
    events.call("disable_endpoint", "hook")
    events.call("subscribe", "order.placed", "hook")
    assert events.call("publish", "order.placed", {}) == 0
    events.call("enable_endpoint", "hook")
    assert events.call("publish", "order.placed", {}) == 1
