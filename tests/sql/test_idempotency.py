"""Idempotency keys: the same key is the same message, live or ended, until its retention is over."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.background import waiting
from tests.sql.clock import pass_time
from tests.sql.queue import Queue
from tests.sql.staging import bulk, row

CONFLICT = psycopg.errors.UniqueViolation


def end(queue: Queue) -> None:
    queue.complete(queue.lease())


def test_the_same_key_and_payload_is_the_same_message(queue: Queue) -> None:
    sent = queue.send(payload={"order_id": 1}, idempotency_key="order-1-created")
    assert queue.send(payload={"order_id": 1}, idempotency_key="order-1-created") == sent
    assert queue.waiting() == [sent]


def test_the_order_of_keys_in_the_payload_does_not_matter(queue: Queue) -> None:
    first = queue.one("select menzil.send_with_options('work', '{\"a\": 1, \"b\": 2}', p_idempotency_key := 'k')")
    assert queue.one("select menzil.send_with_options('work', '{\"b\":2,\"a\":1}', p_idempotency_key := 'k')") == first


def test_the_same_key_with_another_payload_is_a_conflict(queue: Queue) -> None:
    sent = queue.send(payload={"order_id": 1}, idempotency_key="order-1-created")
    with pytest.raises(CONFLICT) as refused:
        queue.send(payload={"order_id": 2}, idempotency_key="order-1-created")
    said = refused.value.diag.message_primary
    assert said.startswith("Idempotency key 'order-1-created' conflict: same key with different payload")
    assert refused.value.diag.message_hint
    assert queue.waiting() == [sent]


def test_other_options_do_not_make_another_message(queue: Queue) -> None:
    sent = queue.send(idempotency_key="k")
    assert queue.send(idempotency_key="k", priority=9, ordering_key="o", headers={"X-A": "1"}) == sent
    assert queue.lease().priority == 0


def test_a_key_belongs_to_its_channel(queue: Queue) -> None:
    queue.call("channel_set", "other")
    here, there = queue.send("work", {"a": 1}, idempotency_key="k"), queue.send("other", {"a": 2}, idempotency_key="k")
    assert here != there


def test_a_key_is_held_while_its_message_is_in_flight_or_waits_for_its_retry(queue: Queue) -> None:
    sent = queue.send(idempotency_key="k")
    message = queue.lease()
    assert queue.send(idempotency_key="k") == sent
    assert queue.fail(message) == "retry"
    assert queue.send(idempotency_key="k") == sent
    with pytest.raises(CONFLICT):
        queue.send(payload={"other": 1}, idempotency_key="k")


def test_an_ended_message_keeps_its_key_for_a_day(queue: Queue) -> None:
    sent = queue.send(payload={"n": 1}, idempotency_key="k")
    end(queue)
    assert queue.send(payload={"n": 1}, idempotency_key="k") == sent
    with pytest.raises(CONFLICT):
        queue.send(payload={"n": 2}, idempotency_key="k")
    pass_time(queue.conn, 86_000)
    assert queue.send(payload={"n": 1}, idempotency_key="k") == sent
    assert queue.waiting() == []
    pass_time(queue.conn, 401)
    assert queue.send(payload={"n": 2}, idempotency_key="k") > sent


@pytest.mark.parametrize("how", ["completed", "failed", "expired", "cancelled"])
def test_only_a_completed_message_keeps_its_key(queue: Queue, how: str) -> None:
    sent = queue.send(idempotency_key="k", expires_at=queue.one("select now() + interval '30 seconds'"))
    if how == "completed":
        end(queue)
    elif how == "failed":
        queue.fail(queue.lease(), "[PERMANENT] no")
    elif how == "expired":
        pass_time(queue.conn, 31)
        assert queue.call("mark_expired_messages") == 1
    else:
        assert queue.call("message_cancel", sent) is True
    assert queue.status(sent).status == how
    again = queue.send(idempotency_key="k")
    assert (again == sent) is (how == "completed")
    assert queue.waiting() == ([] if how == "completed" else [again])


@pytest.mark.parametrize("how", ["send", "send_many", "bulk"])
def test_an_expired_message_that_no_dequeue_has_met_yet_holds_no_key(queue: Queue, how: str) -> None:
    expired = queue.send(idempotency_key="k", expires_at=queue.one("select now() + interval '30 seconds'"))
    leased = queue.send(idempotency_key="l", expires_at=queue.one("select now() + interval '30 seconds'"))
    assert len(queue.dequeue(2)) == 2
    queue.call("message_defer", expired, 1)
    pass_time(queue.conn, 40)
    if how == "send":
        again = queue.send(payload={"n": 2}, idempotency_key="k")
        assert queue.send(idempotency_key="l") == leased
    elif how == "send_many":
        payloads = [Jsonb({"n": 2}), Jsonb({})]
        again, held = queue.call("send_many", ["work", "work"], payloads, p_idempotency_keys=["k", "l"])
        assert held == leased
    else:
        rows = [row(payload={"n": 2}, idempotency_key="k"), row(payload={}, idempotency_key="l")]
        assert bulk(queue, *rows) == (2, 1)
        again = max(queue.waiting())
    assert again > leased
    assert [message.id for message in queue.dequeue(5)] == [again]
    assert queue.status(expired).status == "expired"


def test_the_retention_can_be_set(queue: Queue) -> None:
    queue.call("set_setting", "idempotency_retention", "60")
    sent = queue.send(idempotency_key="k")
    end(queue)
    pass_time(queue.conn, 40)
    assert queue.send(idempotency_key="k") == sent
    pass_time(queue.conn, 20)
    assert queue.send(idempotency_key="k") > sent


def test_without_retention_a_key_is_free_when_its_message_ends(queue: Queue) -> None:
    queue.call("set_setting", "idempotency_retention", "0")
    sent = queue.send(payload={"n": 1}, idempotency_key="k")
    assert queue.send(payload={"n": 1}, idempotency_key="k") == sent
    end(queue)
    again = queue.send(payload={"n": 2}, idempotency_key="k")
    assert again > sent
    assert queue.waiting() == [again]


def test_a_key_used_again_is_kept_for_its_last_message(queue: Queue) -> None:
    queue.send(payload={"n": 1}, idempotency_key="k")
    end(queue)
    pass_time(queue.conn, 90_000)
    second = queue.send(payload={"n": 2}, idempotency_key="k")
    end(queue)
    assert queue.send(payload={"n": 2}, idempotency_key="k") == second
    with pytest.raises(CONFLICT):
        queue.send(payload={"n": 1}, idempotency_key="k")


def test_a_rolled_back_send_leaves_its_key_free(queue: Queue) -> None:
    with queue.conn.transaction(force_rollback=True):
        queue.send(payload={"n": 1}, idempotency_key="k")
    assert queue.send(payload={"n": 2}, idempotency_key="k")


def test_the_key_of_an_erased_message_says_nothing_of_its_payload_and_still_names_it(queue: Queue) -> None:
    sent = queue.send(payload={"card": 4711}, idempotency_key="i")
    queue.complete(queue.lease())
    assert queue.call("message_erase", sent) is True
    assert queue.all("select message_id, payload_hash from menzil.key") == [(sent, None)]
    # Whether it is the same payload can no longer be said.
    for payload in ({"card": 4711}, {"card": 1}):
        assert queue.send(payload=payload, idempotency_key="i") == sent
        many = queue.call("send_many", ["work"], [Jsonb(payload)], p_idempotency_keys=["i"])
        assert many == [sent]
        assert bulk(queue, row(payload=payload, idempotency_key="i"), send_id=str(payload)) == (1, 0)
    assert queue.waiting() == []


def test_a_key_that_was_cleaned_up_is_free(queue: Queue) -> None:
    sent = queue.send(idempotency_key="k")
    end(queue)
    assert queue.call("cleanup_used_keys") == 0
    assert queue.send(idempotency_key="k") == sent
    pass_time(queue.conn, 86_401)
    assert queue.call("cleanup_used_keys") == 1
    assert queue.call("cleanup_used_keys") == 0


def test_a_key_sent_again_within_one_transaction_is_one_message(queue: Queue) -> None:
    for level in ("read committed", "repeatable read", "serializable"):
        with queue.conn.transaction():
            queue.conn.execute(f"set transaction isolation level {level}")
            assert queue.send(idempotency_key=level) == queue.send(idempotency_key=level)
    assert len(queue.waiting()) == 3


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_an_old_snapshot_cannot_send_a_key_twice(queue: Queue, connect, level: str) -> None:
    old = Queue(connect(autocommit=False))
    old.conn.execute(f"set transaction isolation level {level}")
    old.one("select 1")
    old.all("select id from menzil.queue")
    sent = queue.send(idempotency_key="live")
    with pytest.raises(psycopg.errors.SerializationFailure):
        old.send(idempotency_key="live")
    old.conn.rollback()
    assert old.send(idempotency_key="live") == sent


@pytest.mark.parametrize("how", ["live", "ended"])
def test_a_batch_of_an_old_snapshot_cannot_send_a_key_twice(queue: Queue, connect, how: str) -> None:
    old = Queue(connect(autocommit=False))
    old.conn.execute("set transaction isolation level repeatable read")
    old.waiting()
    sent = queue.send(idempotency_key="k")
    if how == "ended":
        end(queue)
    batch = ("send_many", ["work"] * 2, [Jsonb({})] * 2)
    with pytest.raises(psycopg.errors.SerializationFailure):
        old.call(*batch, p_idempotency_keys=["k", "new"])
    old.conn.rollback()
    assert old.call(*batch, p_idempotency_keys=["k", "new"])[0] == sent
    old.conn.commit()
    assert len(queue.waiting()) == (2 if how == "live" else 1)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_an_old_snapshot_cannot_send_again_what_has_ended_since(queue: Queue, connect, level: str) -> None:
    sent = queue.send(idempotency_key="ended")
    old = Queue(connect(autocommit=False))
    old.conn.execute(f"set transaction isolation level {level}")
    assert old.waiting() == [sent]
    end(queue)
    # Either it is told to try again, or it gets the id: a second message would be one too many.
    try:
        assert old.send(idempotency_key="ended") == sent
        old.conn.commit()
    except psycopg.errors.SerializationFailure:
        old.conn.rollback()
        assert old.send(idempotency_key="ended") == sent
        old.conn.commit()
    assert queue.waiting() == []


def test_an_old_snapshot_sees_keys_that_ended_before_it(queue: Queue, connect) -> None:
    sent = queue.send(payload={"n": 1}, idempotency_key="k")
    end(queue)
    old = Queue(connect(autocommit=False))
    old.conn.execute("set transaction isolation level repeatable read")
    assert old.send(payload={"n": 1}, idempotency_key="k") == sent
    with pytest.raises(CONFLICT):
        old.send(payload={"n": 2}, idempotency_key="k")


def test_an_old_snapshot_leaves_nothing_that_would_free_a_key_early(queue: Queue, connect) -> None:
    old = Queue(connect(autocommit=False))
    old.conn.execute("set transaction isolation level repeatable read")
    sent = old.send(idempotency_key="k")
    old.conn.commit()
    end(queue)
    assert queue.send(idempotency_key="k") == sent
    assert queue.call("cleanup_used_keys") == 0


def test_a_second_open_transaction_with_the_same_key_waits_for_the_first(queue: Queue, connect) -> None:
    first, second = Queue(connect(autocommit=False)), Queue(connect())
    sent = first.send(idempotency_key="k")
    with waiting(second.conn, lambda: second.send(idempotency_key="k"), queue.conn) as answer:
        assert not answer.done()
        first.conn.commit()
    assert answer.result() == sent


def test_when_the_first_is_rolled_back_the_second_sends(queue: Queue, connect) -> None:
    first, second = Queue(connect(autocommit=False)), Queue(connect())
    first.send(payload={"n": 1}, idempotency_key="k")
    with waiting(second.conn, lambda: second.send(payload={"n": 2}, idempotency_key="k"), queue.conn) as answer:
        assert not answer.done()
        first.conn.rollback()
    assert queue.waiting() == [answer.result()]


def test_a_repeated_send_is_answered_even_when_the_queue_is_full(queue: Queue) -> None:
    queue.call("channel_set", "work", p_max_size=1)
    sent = queue.send(idempotency_key="k")
    assert queue.send(idempotency_key="k") == sent
    queue.call("channel_set", "work")
    queue.call("set_setting", "max_queue_size", "1")
    assert queue.send(idempotency_key="k") == sent


def test_a_repeated_send_does_not_take_room(queue: Queue) -> None:
    queue.call("channel_set", "work", p_max_size=5)
    for _ in range(3):
        queue.send(idempotency_key="k")
        queue.call("send_many", ["work"], [Jsonb({})], p_idempotency_keys=["k"])
    assert len(queue.send_batch("work", 4)) == 4
