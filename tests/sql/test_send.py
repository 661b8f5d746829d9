"""Sending one message: what it carries, when it counts, and the calls as the first users typed them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import psycopg
from psycopg.types.json import Jsonb

from tests.sql.queue import Queue, ids


def test_a_sent_message_reaches_whoever_dequeues(queue: Queue) -> None:
    sent = queue.call("send", "work", {"order": 1})
    message = queue.lease()
    assert (message.id, message.channel, message.payload, message.content) == (sent, "work", {"order": 1}, None)
    assert (message.priority, message.num_attempts, message.retry_count) == (0, 1, 0)


def test_ids_grow_in_the_order_of_sending(queue: Queue) -> None:
    sent = [queue.call("send", "work", {}) for _ in range(5)]
    assert sent == sorted(set(sent))


def test_any_json_is_a_payload(queue: Queue) -> None:
    for payload in ({}, [], [1, None], "text", 0, False, None, {"ünï": "日本 \\ \" ' \n"}):
        queue.call("send", "work", Jsonb(payload))
        assert queue.lease().payload == payload


def test_rolled_back_transaction_sends_nothing(queue: Queue) -> None:
    with queue.conn.transaction(force_rollback=True):
        queue.send()
        queue.send(ordering_key="k")
        queue.send_batch("work", 3)
    assert queue.dequeue(10) == []
    assert queue.waiting() == []


def test_nobody_sees_a_message_before_its_commit(queue: Queue, connect) -> None:
    other = Queue(connect())
    with queue.conn.transaction():
        sent = queue.send()
        assert other.dequeue() == []
        assert other.waiting() == []
    assert other.lease().id == sent


def test_a_message_can_be_sent_and_leased_in_one_transaction(queue: Queue, connect) -> None:
    with queue.conn.transaction():
        sent = queue.send()
        assert queue.lease().id == sent
    assert Queue(connect()).dequeue() == []


def test_what_a_transaction_sent_and_looked_at_is_still_there_for_others(queue: Queue, connect) -> None:
    other = Queue(connect())
    with queue.conn.transaction():
        sent = queue.send()
        # Leases the first and rolls that back; the message itself stays.
        with queue.conn.transaction(force_rollback=True):
            assert queue.lease().id == sent
    assert other.lease().id == sent


def test_a_lower_id_that_commits_late_is_delivered_too(queue: Queue, connect) -> None:
    slow, quick = Queue(connect(autocommit=False)), queue
    late = slow.send()
    early = quick.send()
    assert late < early
    assert quick.complete(quick.lease()) == {early: "settled"}
    assert quick.dequeue() == []
    slow.conn.commit()
    assert quick.lease().id == late


def test_every_option_travels_with_the_message(queue: Queue) -> None:
    correlation, expires = uuid.uuid4(), datetime.now(UTC) + timedelta(hours=1)
    scheduled = datetime.now(UTC) - timedelta(seconds=1)
    sent = queue.send(
        payload={"a": 1},
        priority=7,
        scheduled_at=scheduled,
        idempotency_key="once",
        correlation_id=correlation,
        expires_at=expires,
        ordering_key="customer-7",
        headers={"X-Tenant": "a"},
        metadata={"trace": [1, 2]},
    )
    row = queue.one("select * from menzil.queue")
    assert (row.id, row.status, row.channel, row.payload, row.priority) == (sent, "pending", "work", {"a": 1}, 7)
    assert (row.ordering_key, row.idempotency_key, row.correlation_id) == ("customer-7", "once", correlation)
    assert (row.headers, row.metadata) == ({"X-Tenant": "a"}, {"trace": [1, 2]})
    assert (row.scheduled_at, row.expires_at) == (scheduled, expires)
    message = queue.lease()
    assert (message.id, message.priority, message.ordering_key) == (sent, 7, "customer-7")
    assert (message.headers, message.metadata) == ({"X-Tenant": "a"}, {"trace": [1, 2]})
    assert (message.correlation_id, message.scheduled_at, message.expires_at) == (correlation, scheduled, expires)


def test_options_may_be_given_by_position(queue: Queue) -> None:
    given = (
        "'work', '{}'::jsonb, 3, null, 'key', '550e8400-e29b-41d4-a716-446655440000'::uuid, null, 'order', '{}', '{}'"
    )
    sent = queue.one(f"select menzil.send_with_options({given})")
    row = queue.one("select id, priority, idempotency_key, ordering_key, headers, metadata from menzil.queue")
    assert row == (sent, 3, "key", "order", {}, {})


def test_the_calls_of_the_documentation_work_as_typed(conn: psycopg.Connection) -> None:
    for name in ("webhook", "payment-webhook"):
        conn.execute("select menzil.channel_set(%s)", [name])
    for call in CALLS:
        (answer,) = conn.execute(f"select menzil.{call}").fetchone()
        assert answer is not None
    (count,) = conn.execute("select count(*) from menzil.queue").fetchone()
    assert count == 18


CALLS = [
    """send_with_options('webhook', '{"urgent": true}'::jsonb, p_priority := 10)""",
    """send('webhook', '{"routine": true}'::jsonb)""",
    """send_batch_with_priority('webhook', ARRAY['{"id": 1}'::jsonb, '{"id": 2}'::jsonb, '{"id": 3}'::jsonb], 5)""",
    """send_with_options('webhook', '{"step": 1}'::jsonb, p_ordering_key := 'order-123')""",
    """send_with_options('webhook', '{"step": 2}'::jsonb, p_ordering_key := 'order-123')""",
    """send_with_options('webhook', '{"order_id": 1}'::jsonb, p_idempotency_key := 'order-1-created')""",
    """send_with_options('webhook', '{"order_id": 1}'::jsonb, p_idempotency_key := 'order-1-created')""",
    """send_with_options('webhook', '{"reminder": true}'::jsonb, p_scheduled_at := NOW() + INTERVAL '30 minutes')""",
    """send_with_options('webhook', '{"report": "daily"}'::jsonb,
        p_scheduled_at := '2025-04-15 09:00:00+00'::timestamptz)""",
    """send_with_options('webhook', '{"flash_sale": true}'::jsonb, p_expires_at := NOW() + INTERVAL '1 hour')""",
    """send_with_options('webhook', '{"offer": "limited"}'::jsonb,
        p_expires_at := '2125-04-14 23:59:59+00'::timestamptz)""",
    """send_with_options('webhook', '{"data": 1}'::jsonb,
        p_correlation_id := '550e8400-e29b-41d4-a716-446655440000'::uuid)""",
    """send_batch('webhook', ARRAY['{"id": 1}'::jsonb, '{"id": 2}'::jsonb, '{"id": 3}'::jsonb])""",
    """enable_fast_mode()""",
    """send_with_options(
        'payment-webhook',
        '{"order_id": 456, "amount": 99.99}'::jsonb,
        p_priority := 8,
        p_ordering_key := 'customer-789',
        p_idempotency_key := 'payment-456-v1',
        p_correlation_id := gen_random_uuid(),
        p_scheduled_at := NOW() + INTERVAL '5 minutes',
        p_expires_at := NOW() + INTERVAL '2 hours')""",
    """send_with_options('webhook', '{}', 10::smallint)""",
]


def test_a_smallint_is_a_priority_too(queue: Queue) -> None:
    queue.one("select menzil.send_with_options('work', '{}', p_priority := 4::smallint)")
    queue.one("select menzil.send_batch_with_priority('work', array['{}'::jsonb], 4::smallint)")
    assert [message.priority for message in queue.dequeue(5)] == [4, 4]


def test_a_binary_body_travels_as_it_is(queue: Queue) -> None:
    body = bytes(range(256))
    sent = queue.call("message_create", "work", body)
    message = queue.lease()
    assert (message.id, message.content, message.payload) == (sent, body, None)
    queue.complete(message)
    assert queue.archived(sent).content == body


def test_an_empty_binary_body_is_a_body(queue: Queue) -> None:
    queue.call("message_create", "work", b"")
    assert queue.lease().content == b""


def test_a_historic_dequeue_time_jumps_the_line_inside_its_channel(queue: Queue) -> None:
    usual = queue.call("message_create", "work", b"usual")
    first = queue.one("select menzil.message_create('work', 'x', '1970-01-01+00')")
    second = queue.one("select menzil.message_create('work', 'x', '2001-01-01+00')")
    before_all = queue.one("select menzil.message_create('work', 'x', '0044-03-15+00')")
    assert ids(queue.dequeue(10)) == [before_all, first, second, usual]


def test_a_historic_message_goes_first_even_after_others_were_taken(queue: Queue) -> None:
    sent = queue.send_batch("work", 4)
    assert ids(queue.dequeue(2)) == sent[:2]
    historic = queue.one("select menzil.message_create('work', 'x', '2001-01-01+00')")
    assert ids(queue.dequeue(5)) == [historic, *sent[2:]]


def test_a_binary_body_may_be_scheduled(queue: Queue) -> None:
    queue.one("select menzil.message_create('work', 'x', now() + interval '1 hour')")
    assert queue.dequeue() == []


def test_fast_mode_lasts_for_one_transaction(queue: Queue) -> None:
    queue.conn.execute("set synchronous_commit = on")
    with queue.conn.transaction():
        queue.call("enable_fast_mode")
        assert queue.one("show synchronous_commit") == "off"
        sent = queue.send()
    assert queue.one("show synchronous_commit") == "on"
    assert queue.lease().id == sent


def test_two_open_transactions_never_wait_for_each_other(queue: Queue, connect) -> None:
    queue.call("channel_set", "limited", 1, 100, 1000)
    first, second = Queue(connect(autocommit=False)), Queue(connect(autocommit=False))
    for sender in (first, second):
        sender.conn.execute("set lock_timeout = '20s'")
        for channel in ("work", "limited"):
            sender.send(channel)
            sender.send(channel, ordering_key="same")
            sender.send_batch(channel, 3)
    first.conn.commit()
    second.conn.commit()
    assert len(queue.waiting()) == 20
