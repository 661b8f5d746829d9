"""Events through the client, sync and async, on its own connection and on the caller's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

import menzil
from menzil.ops import pubsub, watch
from menzil.ops.run import run

SCHEMA = {"type": "object", "required": ["order"], "properties": {"order": {"type": "integer"}}}


@pytest.fixture
def mq(db: str) -> Iterator[menzil.Menzil]:
    """Channels billing and audit; audit wants what comes from TR."""
    with menzil.Menzil(db) as client:
        for channel in ("billing", "audit"):
            client.channel_set(channel)
        client.create_event_type("order.placed", "Somebody bought something.", SCHEMA)
        client.subscribe("order.placed", "billing")
        client.subscribe("order.placed", "audit", {"from": "TR"})
        yield client


def test_an_event_is_part_of_the_business_transaction(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db) as conn:
        assert mq.publish("order.placed", {"order": 41}, conn=conn) == 1
        conn.rollback()
    with psycopg.connect(db) as conn:
        assert mq.publish("order.placed", {"order": 42, "from": "TR"}, conn=conn) == 2
        assert mq.dequeue() == []
    messages = mq.dequeue(limit=10)
    assert {message.channel for message in messages} == {"billing", "audit"}
    assert [message.metadata for message in messages] == [{"event_type": "order.placed"}] * 2


def test_every_option_of_a_send_is_one_of_a_publish(mq: menzil.Menzil) -> None:
    mq.publish(
        "order.placed",
        {"order": 1},
        priority=3,
        expires_in=3600,
        ordering_key="k",
        idempotency_key="i",
        correlation_id="550e8400-e29b-41d4-a716-446655440000",
        headers={"X-A": "b"},
        metadata={"mine": 1},
    )
    (message,) = mq.dequeue()
    assert (message.priority, message.ordering_key, message.headers) == (3, "k", {"X-A": "b"})
    assert message.metadata == {"mine": 1, "event_type": "order.placed"}
    assert str(message.correlation_id) == "550e8400-e29b-41d4-a716-446655440000"
    assert message.expires_at is not None
    assert abs(message.expires_at - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=5)


def test_a_batch_is_published_whole_or_not_at_all(mq: menzil.Menzil) -> None:
    good = {"event_type": "order.placed", "payload": {"order": 1, "note": 'a "quoted" \\ note é😀'}}
    with pytest.raises(menzil.InvalidValueError) as refused:
        mq.publish_batch([good, {"event_type": "order.placed", "payload": {"order": "x"}}])
    assert refused.value.message == (
        'The payload of event \'order.placed\' breaks the rule type "integer" at "/order".'
    )
    assert mq.dequeue() == []
    later = {"event_type": "order.placed", "payload": {"order": 2}, "delay": 3600, "expires_in": 7200}
    assert mq.publish_batch([good, later]) == 2
    (message,) = mq.dequeue(limit=10)
    assert message.payload == good["payload"]
    assert mq.publish_batch([]) == 0


def test_a_batch_longer_than_one_statement_counts_all(mq: menzil.Menzil, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pubsub, "CHUNK", 3)
    event = {"event_type": "order.placed", "payload": {"order": 1, "from": "TR"}}
    assert mq.publish_batch([event] * 7) == 14
    with pytest.raises(menzil.InvalidValueError):
        mq.publish_batch([event] * 3 + [event | {"priority": 11}])
    assert len(mq.dequeue(limit=100)) == 14


def test_subscriptions_end_and_event_types_go(mq: menzil.Menzil) -> None:
    assert mq.subscribe("order.placed", "billing") == mq.subscribe("order.placed", "billing")
    extra = mq.subscribe("order.placed", "billing", {"order": 1})
    assert mq.unsubscribe(extra) == 1
    assert mq.unsubscribe("order.placed", "billing") == 1
    assert mq.publish("order.placed", {"order": 1}) == 0
    mq.drop_event_type("order.placed")
    with pytest.raises(menzil.UnknownNameError):
        mq.publish("order.placed", {"order": 1})
    with pytest.raises(menzil.UnknownNameError):
        mq.unsubscribe(extra)


def test_the_async_client_publishes_too(db: str) -> None:
    async def story() -> None:
        async with menzil.AsyncMenzil(db) as mq:
            await mq.channel_set("billing")
            await mq.create_event_type("order.placed", schema=SCHEMA)
            subscription = await mq.subscribe("order.placed", "billing", {"order": 1})
            async with await psycopg.AsyncConnection.connect(db) as conn:
                assert await mq.publish("order.placed", {"order": 1}, conn=conn) == 1
                await conn.rollback()
            events = [{"event_type": "order.placed", "payload": {"order": n}} for n in (1, 2, 1)]
            assert await mq.publish_batch(events) == 2
            assert len(await mq.dequeue(limit=10)) == 2
            assert await mq.unsubscribe(subscription) == 1
            await mq.drop_event_type("order.placed")

    asyncio.run(story())


def test_what_can_be_watched_is_read_as_plain_values(mq: menzil.Menzil, db: str) -> None:
    mq.publish("order.placed", {"order": 1})
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.worker_hello('w', 'host', 7, '0.1.0', array['billing'], 4)")
        metrics = {(metric.name, metric.labels.get("endpoint")): metric for metric in run(conn, watch.metrics())}
        assert metrics["queue_depth_by_endpoint", "billing"].value == 1.0
        assert metrics["messages_sent_total", None].kind == "counter"
        checks = {check.name: check for check in run(conn, watch.health_check())}
        assert (checks["backlog"].status, checks["backlog"].hint) == ("ok", None)
        (worker,) = run(conn, watch.get_worker_status())
        assert (worker.worker, worker.channels, worker.status) == ("w", ["billing"], "alive")
        assert worker.last_heartbeat_at.tzinfo is not None
        (event_type,) = run(conn, pubsub.event_types())
        assert event_type["schema"] == SCHEMA
        assert [row["filter"] for row in run(conn, pubsub.subscriptions("order.placed"))] == [None, {"from": "TR"}]
        assert run(conn, pubsub.subscriptions("other")) == []
        assert len(run(conn, pubsub.subscriptions())) == 2
        assert run(conn, pubsub.validate_event("order.placed", {"order": 1})) is True
