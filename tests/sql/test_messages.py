"""Single messages from outside: cancel, status, peek, retry now."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from tests.sql.clock import created_at, pass_time, until
from tests.sql.queue import Queue, ids
from tests.sql.test_dequeue import COLUMNS


def later(queue: Queue, seconds: int = 3600) -> object:
    return queue.now() + timedelta(seconds=seconds)


def test_a_waiting_message_can_be_cancelled(queue: Queue) -> None:
    sent = queue.send()
    assert queue.call("message_cancel", sent) is True
    assert queue.dequeue() == []
    row = queue.status(sent)
    assert (row.status, row.num_attempts) == ("cancelled", 0)
    assert row.ended_at is not None
    assert queue.call("message_cancel", sent) is False


def test_wherever_a_message_waits_it_can_be_cancelled(queue: Queue) -> None:
    scheduled = queue.send(scheduled_at=later(queue))
    head, behind = queue.send(ordering_key="k"), queue.send(ordering_key="k")
    retried = queue.send(priority=9)
    queue.fail(queue.lease())
    for sent in (scheduled, behind, head, retried):
        assert queue.call("message_cancel", sent) is True
    assert queue.waiting() == []
    assert queue.one("select count(*) from menzil.archive where status = 'cancelled'") == 4


def test_it_is_too_late_to_cancel_what_is_in_flight_or_ended(queue: Queue) -> None:
    sent = queue.send()
    message = queue.lease()
    assert queue.call("message_cancel", sent) is False
    assert queue.complete(message) == {sent: "settled"}
    assert queue.call("message_cancel", sent) is False
    assert queue.status(sent).status == "completed"


def test_a_cancel_that_is_rolled_back_did_not_happen(queue: Queue) -> None:
    sent = queue.send()
    with queue.conn.transaction(force_rollback=True):
        assert queue.call("message_cancel", sent) is True
    assert queue.lease().id == sent


def test_a_cancel_that_is_rolled_back_after_a_dequeue_looked_loses_nothing(queue: Queue, connect) -> None:
    sent = queue.send()
    undecided = Queue(connect(autocommit=False))
    assert undecided.call("message_cancel", sent) is True
    assert queue.dequeue() == []
    undecided.conn.rollback()
    (message,) = until(queue.dequeue)
    assert message.id == sent


def test_cancelling_one_of_many_leaves_the_others_in_order(queue: Queue) -> None:
    sent = queue.send_batch("work", 6)
    assert queue.call("message_cancel", sent.pop(0))
    assert queue.call("message_cancel", sent.pop(2))
    taken: list[int] = []
    until(lambda: taken.extend(ids(queue.dequeue(10))) or len(taken) == 4)
    assert taken == sent


def test_the_status_follows_a_message_through_its_life(queue: Queue) -> None:
    sent = queue.send(scheduled_at=later(queue, 30), expires_at=later(queue, 7200))
    row = queue.status(sent)
    assert (row.id, row.status, row.channel, row.num_attempts, row.retry_count) == (sent, "pending", "work", 0, 0)
    assert row.scheduled_at is not None
    assert row.expires_at is not None
    assert (row.next_retry_at, row.unlock_at, row.ended_at, row.last_error) == (None, None, None, None)
    pass_time(queue.conn, 31)
    message = queue.lease()
    row = queue.status(sent)
    assert (row.status, row.num_attempts, row.unlock_at) == ("processing", 1, message.unlock_at)
    queue.fail(message, "first")
    row = queue.status(sent)
    assert (row.status, row.num_attempts, row.retry_count, row.last_error) == ("pending", 1, 1, "first")
    assert row.next_retry_at > queue.now()
    pass_time(queue.conn, 11)
    message = queue.lease()
    assert queue.status(sent).next_retry_at is None
    queue.complete(message)
    row = queue.status(sent)
    assert (row.status, row.num_attempts, row.retry_count, row.last_error) == ("completed", 2, 1, "first")
    assert row.ended_at is not None


def test_the_status_shows_the_documented_columns(queue: Queue) -> None:
    assert queue.status(queue.send())._fields == (
        "id",
        "status",
        "channel",
        "num_attempts",
        "retry_count",
        "last_error",
        "created_at",
        "scheduled_at",
        "next_retry_at",
        "unlock_at",
        "expires_at",
        "ended_at",
    )


def test_peek_shows_the_next_messages_without_leasing_them(queue: Queue) -> None:
    queue.call("channel_set", "other")
    queue.send("other")
    sent = queue.send_batch("work", 12)
    urgent = queue.send(priority=3, payload={"u": 1}, headers={"X-A": "1"})
    peeked = queue.rows("message_peek", "work")
    assert ids(peeked) == [urgent, *sent[:9]]
    assert (peeked[0].payload, peeked[0].headers, peeked[0].priority) == ({"u": 1}, {"X-A": "1"}, 3)
    assert peeked[0].num_attempts == 0
    assert ids(queue.rows("message_peek", "work", 2)) == [urgent, sent[0]]
    assert ids(queue.dequeue(3, ["work"])) == [urgent, *sent[:2]]
    assert ids(queue.rows("message_peek", "work", 1)) == [sent[2]]


def test_peek_shows_what_a_dequeue_shows_but_the_lease(queue: Queue) -> None:
    queue.send()
    (row,) = queue.rows("message_peek", "work")
    assert row._fields == tuple(name for name in COLUMNS if name not in ("unlock_at", "batch"))


def test_peek_shows_what_may_be_leased_and_nothing_else(queue: Queue) -> None:
    head, _behind = queue.send(ordering_key="k"), queue.send(ordering_key="k")
    queue.send(scheduled_at=later(queue))
    due = queue.send(scheduled_at=later(queue, 30))
    queue.send(expires_at=later(queue, 30))
    pass_time(queue.conn, 31)
    assert sorted(ids(queue.rows("message_peek", "work"))) == [head, due]
    queue.call("maintain")
    assert sorted(ids(queue.rows("message_peek", "work"))) == [head, due]


def test_peek_shows_the_first_of_a_key_whether_it_was_scheduled_or_not(queue: Queue) -> None:
    first, _second = (queue.send(ordering_key="k", scheduled_at=later(queue, 30)) for _ in range(2))
    pass_time(queue.conn, 31)
    assert ids(queue.rows("message_peek", "work")) == [first]
    queue.send(ordering_key="k")
    assert ids(queue.rows("message_peek", "work")) == [first]
    assert queue.lease().id == first
    assert ids(queue.rows("message_peek", "work")) == []


def test_a_message_that_waits_for_its_retry_can_be_tried_now(queue: Queue) -> None:
    sent = queue.send()
    queue.fail(queue.lease(), retry_after="1 hour")
    assert queue.dequeue() == []
    assert queue.call("message_retry_now", sent) is True
    message = queue.lease()
    assert (message.id, message.num_attempts, message.retry_count) == (sent, 2, 1)


def test_a_scheduled_message_can_be_sent_now(queue: Queue) -> None:
    sent = queue.send(scheduled_at=later(queue))
    assert queue.call("message_retry_now", sent) is True
    assert queue.lease().id == sent


def test_a_keyed_retry_can_be_tried_now_and_keeps_its_place(queue: Queue) -> None:
    first, second = queue.send(ordering_key="k"), queue.send(ordering_key="k")
    queue.fail(queue.lease())
    assert queue.call("message_retry_now", first) is True
    message = queue.lease()
    assert message.id == first
    queue.complete(message)
    assert queue.lease().id == second


def test_there_is_nothing_to_hurry_when_a_message_does_not_wait_for_a_time(queue: Queue) -> None:
    sent = queue.send()
    assert queue.call("message_retry_now", sent) is False
    message = queue.lease()
    assert queue.call("message_retry_now", sent) is False
    queue.complete(message)
    assert queue.call("message_retry_now", sent) is False


@pytest.mark.parametrize("function", ["message_cancel", "message_status", "message_retry_now"])
def test_a_message_that_never_was_is_unknown(queue: Queue, function: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedObject):
        queue.call(function, 987_654_321)


def test_status_and_cancel_work_inside_the_sending_transaction(queue: Queue) -> None:
    with queue.conn.transaction():
        sent = queue.send()
        assert queue.status(sent).status == "pending"
        assert queue.call("message_cancel", sent) is True
    assert queue.dequeue() == []
    assert queue.status(sent).status == "cancelled"


def test_the_status_of_a_message_of_another_month_is_found(queue: Queue) -> None:
    waiting, done = queue.send(), queue.send(priority=5)
    queue.complete(queue.lease())
    for sent in (waiting, done):
        created_at(queue.conn, sent, queue.one("select now() - interval '3 months'"))
    found = [queue.all("select * from menzil.message_status(%s)", sent) for sent in (waiting, done)]
    assert [[(row.id, row.status, row.num_attempts) for row in rows] for rows in found] == [
        [(waiting, "pending", 0)],
        [(done, "completed", 1)],
    ]
