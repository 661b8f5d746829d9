"""Publishing: one copy for each subscriber, with everything a message can carry, all or none."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.queue import Queue

NAMES = ("a", "b", "c")


@pytest.fixture
def events(queue: Queue) -> Queue:
    """Event type placed; channels a and b want all of it, c what comes from TR."""
    queue.call("create_event_type", "placed")
    for name in NAMES:
        queue.call("channel_set", name)
    queue.call("subscribe", "placed", "a")
    queue.call("subscribe", "placed", "b")
    queue.call("subscribe", "placed", "c", {"from": {"country": "TR"}})
    return queue


def batch(queue: Queue, *events: Any) -> int:
    return queue.call("publish_batch", [Jsonb(event) for event in events])


def live(queue: Queue) -> list[Any]:
    return queue.all("select channel, payload from menzil.queue order by id")


def refused(queue: Queue, state: str, *events: Any) -> None:
    with pytest.raises(psycopg.Error) as said:
        batch(queue, *events)
    assert (said.value.sqlstate, live(queue)) == (state, [])


def test_every_subscriber_gets_a_copy_that_says_which_event_it_is(events: Queue) -> None:
    assert events.call("publish", "placed", {"order": 1}) == 2
    assert live(events) == [("a", {"order": 1}), ("b", {"order": 1})]
    assert [message.metadata for message in events.dequeue(10)] == [{"event_type": "placed"}] * 2


@pytest.mark.parametrize(
    ("payload", "copies"),
    [
        ({"from": {"country": "TR", "city": "Izmir"}, "order": 1}, 3),
        ({"from": {"country": "DE"}}, 2),
        ({"from": "TR"}, 2),
        ({}, 2),
        ([{"from": {"country": "TR"}}], 2),
        (None, 2),
    ],
)
def test_a_filter_is_what_the_payload_must_contain(events: Queue, payload: Any, copies: int) -> None:
    assert events.call("publish", "placed", Jsonb(payload)) == copies


def test_an_event_without_subscribers_is_no_message(queue: Queue) -> None:
    queue.call("create_event_type", "unheard")
    assert queue.call("publish", "unheard", {}) == 0
    assert batch(queue, {"event_type": "unheard", "payload": 1}) == 0
    assert live(queue) == []


def test_an_endpoint_with_two_fitting_subscriptions_gets_one_copy(events: Queue) -> None:
    events.call("subscribe", "placed", "a", {"order": 1})
    assert events.call("publish", "placed", {"order": 1}) == 2
    assert batch(events, {"event_type": "placed", "payload": {"order": 1}}) == 2


def test_a_disabled_endpoint_is_left_out_and_a_paused_one_queues(events: Queue) -> None:
    for name in ("off", "held"):
        events.call("create_endpoint", name, "http", {"url": "https://example.com/"})
        events.call("subscribe", "placed", name)
    events.call("disable_endpoint", "off")
    events.call("channel_pause", "held")
    open_circuit = (
        "update menzil.gate set circuit = 2 where channel_id = (select id from menzil.endpoints where name = 'held')"
    )
    events.conn.execute(open_circuit)
    assert events.call("publish", "placed", {}) == 3
    assert batch(events, {"event_type": "placed", "payload": {}}) == 3
    assert {row.channel for row in live(events)} == {"a", "b", "held"}


def test_every_option_reaches_every_copy(events: Queue) -> None:
    options = {
        "priority": 7,
        "correlation_id": "550e8400-e29b-41d4-a716-446655440000",
        "expires_at": "2099-01-01T00:00:00+00:00",
        "ordering_key": "customer-7",
        "headers": {"X-Tenant": "a"},
        "metadata": {"mine": 1, "event_type": "not for you to say"},
    }
    assert events.call("publish", "placed", {"n": 1}, **{f"p_{name}": value for name, value in options.items()}) == 2
    assert batch(events, {"event_type": "placed", "payload": {"n": 2}, **options}) == 2
    rows = events.all(
        """select priority, correlation_id::text, expires_at = '2099-01-01 00:00+00', ordering_key, headers, metadata
             from menzil.queue"""
    )
    metadata = {"mine": 1, "event_type": "placed"}
    assert rows == [(7, options["correlation_id"], True, "customer-7", {"X-Tenant": "a"}, metadata)] * 4


def test_a_scheduled_event_waits_for_its_time(events: Queue) -> None:
    assert events.call("publish", "placed", {}, p_scheduled_at="2099-01-01") == 2
    assert batch(events, {"event_type": "placed", "payload": {}, "scheduled_at": "2099-01-01T00:00:00Z"}) == 2
    assert events.dequeue(10) == []
    assert events.one("select count(*) from menzil.queue where scheduled_at = '2099-01-01 00:00+00'") >= 2


def test_one_key_works_over_the_fan_out_and_a_repeat_counts_what_is_there(events: Queue) -> None:
    assert events.call("publish", "placed", {"n": 1}, p_idempotency_key="k") == 2
    assert events.call("publish", "placed", {"n": 1}, p_idempotency_key="k") == 2
    assert batch(events, *[{"event_type": "placed", "payload": {"n": 1}, "idempotency_key": "k"}] * 2) == 2
    assert len(live(events)) == 2
    events.call("channel_set", "late")
    events.call("subscribe", "placed", "late")
    assert events.call("publish", "placed", {"n": 1}, p_idempotency_key="k") == 3
    assert [row.channel for row in live(events)] == ["a", "b", "late"]
    with pytest.raises(psycopg.errors.UniqueViolation):
        events.call("publish", "placed", {"n": 2}, p_idempotency_key="k")


def test_a_repeat_after_the_copies_ended_sends_nothing(events: Queue) -> None:
    events.call("publish", "placed", {}, p_idempotency_key="k")
    events.complete(*events.dequeue(10))
    assert events.call("publish", "placed", {}, p_idempotency_key="k") == 2
    assert live(events) == []


def test_a_batch_keeps_its_order_in_each_channel(events: Queue) -> None:
    events.call("create_event_type", "paid")
    events.call("subscribe", "paid", "b")
    given = [{"event_type": ("placed", "paid")[n % 2], "payload": n} for n in range(6)]
    assert batch(events, *given) == 3 + 6
    assert [row.payload for row in live(events) if row.channel == "b"] == [0, 1, 2, 3, 4, 5]
    assert [row.payload for row in live(events) if row.channel == "a"] == [0, 2, 4]
    assert batch(events) == 0


def test_one_bad_event_sends_none_of_the_batch(events: Queue) -> None:
    events.call("create_event_type", "checked", None, {"required": ["id"]})
    good: dict[str, Any] = {"event_type": "placed", "payload": 1}
    refused(events, "22023", good, {"event_type": "checked", "payload": {}})
    refused(events, "42704", good, {"event_type": "unknown", "payload": {}})
    refused(events, "22004", good, {"event_type": "placed"})
    refused(events, "22004", good, {"payload": 1})
    refused(events, "22023", good, good | {"priority": 11})
    refused(events, "22023", good, good | {"prio": 1})
    refused(events, "22023", good, good | {"delay": 1})
    refused(events, "22023", good, good | {"scheduled_at": "soon"})
    refused(events, "22023", good, good | {"metadata": []})
    refused(events, "22023", good, 1)
    assert batch(events, good) == 2


def test_what_is_wrong_is_refused_also_while_nobody_listens(queue: Queue) -> None:
    queue.call("create_event_type", "unheard", None, {"type": "object"})
    event: dict[str, Any] = {"event_type": "unheard", "payload": {}}
    for bad in ({"payload": 1}, {"priority": 11}, {"ordering_key": ""}, {"metadata": 1}, {"headers": {"a": 1}}):
        refused(queue, "22023", event | bad)
        options = {
            f"p_{name}": Jsonb(value) if name in ("payload", "metadata") else value for name, value in bad.items()
        }
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            queue.call("publish", **{"p_event_type": "unheard", "p_payload": Jsonb({}), **options})
    queue.conn.execute("select menzil.set_setting('max_payload_size', '2048')")
    refused(queue, "54000", event | {"payload": {"x": "y" * 3000}})


def test_the_whole_fan_out_is_counted_against_the_queue(events: Queue) -> None:
    events.conn.execute("select menzil.set_setting('max_queue_size', '3')")
    event = {"event_type": "placed", "payload": 1}
    refused(events, "53400", event, event)
    assert batch(events, event) == 2
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
        events.call("publish", "placed", {})
    assert len(live(events)) == 2


def test_one_full_channel_refuses_the_event_for_all(events: Queue) -> None:
    events.call("channel_set", "b", p_max_size=1)
    assert events.call("publish", "placed", {}, p_idempotency_key="k") == 2
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
        events.call("publish", "placed", {})
    assert len(live(events)) == 2
    assert events.call("publish", "placed", {}, p_idempotency_key="k") == 2  # a repeat needs no room


def test_events_of_a_rolled_back_transaction_were_never_published(events: Queue) -> None:
    with events.conn.transaction(force_rollback=True):
        assert events.call("publish", "placed", {}) == 2
    assert live(events) == []


def test_a_publish_reads_the_subscriptions_of_its_own_type_alone(events: Queue) -> None:
    events.conn.execute(
        """insert into menzil.event_type (name) select 'other' || n from generate_series(1, 2000) n;
           insert into menzil.subscription (event_type, channel_id)
             select 'other' || n, (select min(id) from menzil.channel) from generate_series(1, 2000) n"""
    )
    read = "select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes where indexrelname like 'subscription_%%'"
    force = "select pg_stat_force_next_flush()"
    events.conn.execute(force)
    before = events.one(read)
    assert events.call("publish", "placed", {}) == 2
    assert batch(events, {"event_type": "placed", "payload": {}}) == 2
    events.conn.execute(force)
    assert events.one(read) - before <= 2 * 3 * 2
    sequential = "select seq_tup_read from pg_stat_user_tables where relname = 'subscription'"
    seen = events.one(sequential)
    events.call("publish", "placed", {})
    events.conn.execute(force)
    assert events.one(sequential) == seen
