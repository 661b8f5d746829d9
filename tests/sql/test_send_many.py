"""Sending many messages in one call: ids in the order given, options per message, all or nothing."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.queue import Queue, ids


def payloads(count: int) -> list[Jsonb]:
    return [Jsonb({"n": n}) for n in range(count)]


def test_a_batch_returns_its_ids_in_payload_order(queue: Queue) -> None:
    sent = queue.call("send_batch", "work", payloads(50))
    assert len(set(sent)) == 50
    assert [(message.id, message.payload["n"]) for message in queue.dequeue(100)] == list(
        zip(sent, range(50), strict=True)
    )


def test_a_batch_may_have_a_priority(queue: Queue) -> None:
    usual = queue.call("send_batch", "work", payloads(2))
    urgent = queue.call("send_batch_with_priority", "work", payloads(2), 5)
    taken = queue.dequeue(10)
    assert ids(taken) == urgent + usual
    assert [message.priority for message in taken] == [5, 5, 0, 0]


def test_an_empty_batch_sends_nothing(queue: Queue) -> None:
    assert queue.one("select menzil.send_batch('work', '{}'::jsonb[])") == []
    assert queue.one("select menzil.send_batch_with_priority('work', '{}'::jsonb[], 5)") == []
    assert queue.one("select menzil.send_many('[]'::jsonb)") == []
    assert queue.one("select menzil.send_many('{}'::text[], '{}'::jsonb[])") == []
    assert queue.waiting() == []


def test_one_bad_payload_refuses_the_whole_batch(queue: Queue) -> None:
    with pytest.raises(psycopg.Error) as refused:
        queue.one("select menzil.send_batch('work', array['{}', null, '{}']::jsonb[])")
    assert refused.value.sqlstate == "22004"
    assert queue.waiting() == []


def test_a_large_batch_is_one_call(queue: Queue) -> None:
    sent = queue.one("select menzil.send_batch('work', array_agg(to_jsonb(n))) from generate_series(1, 5000) n")
    taken = [message for _ in range(5) for message in queue.dequeue(1000)]
    assert ids(taken) == sent
    assert [message.payload for message in taken] == list(range(1, 5001))


def test_many_messages_go_to_many_channels_in_one_call(queue: Queue) -> None:
    queue.call("channel_set", "other")
    sent = queue.call("send_many", ["work", "other", "work"], payloads(3))
    rows = queue.all("select id, channel, payload ->> 'n' from menzil.queue order by id")
    assert rows == [(sent[0], "work", "0"), (sent[1], "other", "1"), (sent[2], "work", "2")]


def test_each_of_many_messages_has_its_own_options(queue: Queue) -> None:
    later, end = datetime.now(UTC) + timedelta(hours=1), datetime.now(UTC) + timedelta(hours=2)
    correlation = uuid.uuid4()
    sent = queue.call(
        "send_many",
        ["work"] * 3,
        payloads(3),
        p_priorities=[9, None, 0],
        p_scheduled_ats=[None, later, None],
        p_idempotency_keys=[None, "b", "c"],
        p_correlation_ids=[correlation, None, None],
        p_expires_ats=[None, end, None],
        p_ordering_keys=["k", None, None],
        p_headers=[Jsonb({"X-A": "1"}), None, None],
        p_metadatas=[None, None, Jsonb({"m": 1})],
    )
    columns = "id, priority, scheduled_at, idempotency_key, correlation_id, expires_at, ordering_key, headers, metadata"
    assert queue.all(f"select {columns} from menzil.queue order by id") == [
        (sent[0], 9, None, None, correlation, None, "k", {"X-A": "1"}, None),
        (sent[1], 0, later, "b", None, end, None, None, None),
        (sent[2], 0, None, "c", None, None, None, None, {"m": 1}),
    ]
    assert ids(queue.dequeue(10)) == [sent[0], sent[2]]


def test_the_same_from_one_json_array(queue: Queue) -> None:
    end = datetime.now(UTC) + timedelta(hours=2)
    correlation = str(uuid.uuid4())
    messages = [
        {
            "endpoint": "work",
            "payload": {"n": 0},
            "priority": 9,
            "correlation_id": correlation,
            "ordering_key": "k",
            "headers": {"X-A": "1"},
        },
        {"channel": "work", "payload": [1], "idempotency_key": "b", "expires_at": end.isoformat(), "priority": None},
        {"endpoint": "work", "payload": "text", "metadata": {"m": 1}, "headers": None, "scheduled_at": None},
    ]
    sent = queue.one("select menzil.send_many(%s::jsonb)", Jsonb(messages))
    columns = (
        "id, payload, priority, idempotency_key, correlation_id::text, expires_at, ordering_key, headers, metadata"
    )
    assert queue.all(f"select {columns} from menzil.queue order by id") == [
        (sent[0], {"n": 0}, 9, None, correlation, None, "k", {"X-A": "1"}, None),
        (sent[1], [1], 0, "b", None, end, None, None, None),
        (sent[2], "text", 0, None, None, None, None, None, {"m": 1}),
    ]


def test_the_same_key_twice_in_a_batch_is_one_message(queue: Queue) -> None:
    sent = queue.call("send_many", ["work"] * 4, [Jsonb({})] * 4, p_idempotency_keys=["a", "b", "a", None])
    assert sent[0] == sent[2]
    assert len(set(sent)) == 3
    assert sorted(queue.waiting()) == sorted(set(sent))
    assert sorted(ids(queue.dequeue(10))) == sorted(set(sent))


def test_the_same_key_twice_with_different_payloads_refuses_the_batch(queue: Queue) -> None:
    with pytest.raises(psycopg.errors.UniqueViolation):
        queue.call("send_many", ["work"] * 2, payloads(2), p_idempotency_keys=["a", "a"])
    assert queue.waiting() == []


def test_a_batch_finds_keys_that_are_live_and_keys_that_ended(queue: Queue) -> None:
    live = queue.send(idempotency_key="live")
    ended = queue.send(idempotency_key="ended", priority=10)
    queue.complete(queue.lease())
    sent = queue.call("send_many", ["work"] * 3, [Jsonb({})] * 3, p_idempotency_keys=["ended", "new", "live"])
    assert (sent[0], sent[2]) == (ended, live)
    assert queue.waiting() == [live, sent[1]]


def test_keyed_messages_of_one_batch_keep_their_order(queue: Queue) -> None:
    sent = queue.call("send_many", ["work"] * 6, payloads(6), p_ordering_keys=["x", "y", None, "x", "y", "x"])
    assert sorted(ids(queue.dequeue(10))) == sent[:3]


def test_arrays_that_count_from_zero_are_read_in_order(queue: Queue) -> None:
    sent = queue.one(
        """select menzil.send_many('[0:2]={work,work,work}'::text[], '[0:2]={1,1,1}'::jsonb[],
             p_idempotency_keys := '[0:2]={a,b,a}'::text[])"""
    )
    assert sent[0] == sent[2] != sent[1]
    assert queue.waiting() == sorted(set(sent))
    assert len(queue.one("select menzil.send_batch('work', '[0:1]={1,2}'::jsonb[])")) == 2


def test_a_message_that_names_a_channel_and_another_endpoint_is_refused(queue: Queue) -> None:
    queue.call("channel_set", "other")
    both = [{"endpoint": "work", "channel": "other", "payload": 1}]
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="names a channel and another endpoint") as refusal:
        queue.one("select menzil.send_many(%s::jsonb)", Jsonb(both))
    assert refusal.value.diag.message_hint == "Give one of them: they mean the same."
    same = [{"endpoint": "work", "channel": "work", "payload": 1}, {"endpoint": None, "channel": "work", "payload": 2}]
    assert len(queue.one("select menzil.send_many(%s::jsonb)", Jsonb(same))) == 2


def test_a_sentence_about_several_missing_values_is_plural(queue: Queue) -> None:
    with pytest.raises(psycopg.errors.NullValueNotAllowed, match=r"^A lease time and a limit are needed"):
        queue.one("select menzil.message_dequeue(null)")
