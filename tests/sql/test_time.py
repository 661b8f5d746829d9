"""Schedules and expiry of single messages: not before the one, not after the other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue, ids


def soon(queue: Queue, seconds: int) -> object:
    return queue.now() + timedelta(seconds=seconds)


def test_a_scheduled_message_waits_for_its_time(queue: Queue) -> None:
    sent = queue.send(scheduled_at=soon(queue, 300))
    assert queue.dequeue(10) == []
    pass_time(queue.conn, 250)
    assert queue.dequeue(10) == []
    pass_time(queue.conn, 50)
    assert queue.lease().id == sent


def test_a_schedule_in_the_past_means_now(queue: Queue) -> None:
    sent = queue.send(scheduled_at=soon(queue, -30))
    assert queue.lease().id == sent


def test_a_short_schedule_is_kept_by_the_real_clock(queue: Queue) -> None:
    at = queue.now() + timedelta(milliseconds=150)
    sent = queue.send(scheduled_at=at)
    (message,) = until(queue.dequeue)
    assert message.id == sent
    assert queue.now() >= at


def test_a_schedule_long_past_is_found_by_the_sweep(queue: Queue) -> None:
    sent = queue.send(scheduled_at=soon(queue, 30))
    pass_time(queue.conn, 100_000)
    assert queue.lease().id == sent


def test_many_messages_due_at_once_all_come(queue: Queue) -> None:
    queue.conn.execute(
        """select menzil.send_with_options('work', '{}', p_scheduled_at := now() + interval '30 seconds')
             from generate_series(1, 1200)"""
    )
    pass_time(queue.conn, 31)
    taken: set[int] = set()
    until(lambda: taken.update(ids(queue.dequeue(500))) or len(taken) == 1200)


def test_an_expired_message_is_never_leased_and_archived_as_expired(queue: Queue) -> None:
    sent = queue.send(expires_at=soon(queue, 30))
    pass_time(queue.conn, 30)
    assert queue.dequeue(10) == []
    row = queue.archived(sent)
    assert (row.status, row.num_attempts, row.first_leased_at) == ("expired", 0, None)
    assert queue.waiting() == []


def test_a_message_that_expired_before_it_was_sent_is_never_leased(queue: Queue) -> None:
    sent = queue.send(expires_at=soon(queue, -1))
    assert queue.dequeue(10) == []
    assert queue.status(sent).status == "expired"


def test_a_short_expiry_is_kept_by_the_real_clock(queue: Queue) -> None:
    at = queue.now() + timedelta(milliseconds=50)
    sent = queue.send(expires_at=at)
    until(lambda: queue.now() > at)
    assert queue.dequeue(10) == []
    assert queue.status(sent).status == "expired"


def test_thousands_that_expired_together_keep_no_dequeue_from_what_waits_behind_them(queue: Queue) -> None:
    queue.one(
        """select count(menzil.send_with_options('work', '1', p_expires_at := now() + interval '30 s'))
             from generate_series(1, 2500)"""
    )
    waits = queue.send()
    pass_time(queue.conn, 31)
    assert ids(queue.dequeue(1)) == [waits]
    assert queue.one("select count(*) from menzil.archive where status = 'expired'") > 2000


def test_expired_messages_do_not_use_up_the_batch(queue: Queue) -> None:
    for _ in range(5):
        queue.send(expires_at=soon(queue, 30))
    fresh = queue.send()
    pass_time(queue.conn, 31)
    assert ids(until(lambda: queue.dequeue(3))) == [fresh]


def test_the_janitor_ends_what_nobody_dequeues(queue: Queue) -> None:
    ready = queue.send(expires_at=soon(queue, 30))
    scheduled = queue.send(scheduled_at=soon(queue, 20), expires_at=soon(queue, 30))
    behind = [queue.send(ordering_key="k", expires_at=soon(queue, 30)) for _ in range(2)]
    stays = [queue.send(), queue.send(expires_at=soon(queue, 90))]
    pass_time(queue.conn, 31)
    assert queue.call("mark_expired_messages") == 4
    assert queue.call("mark_expired_messages") == 0
    assert {queue.status(sent).status for sent in [ready, scheduled, *behind]} == {"expired"}
    assert queue.waiting() == stays
    assert ids(until(lambda: queue.dequeue(10))) == stays


def test_the_janitor_takes_no_more_than_asked(queue: Queue) -> None:
    for _ in range(5):
        queue.send(expires_at=soon(queue, -1))
    assert [queue.call("mark_expired_messages", 2) for _ in range(4)] == [2, 2, 1, 0]


def test_a_message_in_flight_may_finish_after_its_expiry(queue: Queue) -> None:
    sent = queue.send(expires_at=soon(queue, 30))
    message = queue.lease()
    pass_time(queue.conn, 31)
    assert queue.call("mark_expired_messages") == 0
    assert queue.complete(message) == {sent: "settled"}


@pytest.mark.parametrize("back", ["retry", "defer", "recovery"])
def test_a_message_that_comes_back_after_its_expiry_is_not_leased_again(queue: Queue, back: str) -> None:
    sent = queue.send(expires_at=soon(queue, 30))
    message = queue.lease(lock_ms=40_000)
    pass_time(queue.conn, 31)
    if back == "retry":
        assert queue.fail(message, retry_after="0") == "retry"
    elif back == "defer":
        queue.defer(message)
    else:
        pass_time(queue.conn, 10)
    assert queue.dequeue(10) == []
    until(lambda: queue.status(sent).status == "expired" or queue.dequeue(10))
    row = queue.archived(sent)
    assert (row.status, row.num_attempts) == ("expired", 1)
    assert row.first_leased_at is not None


def test_a_scheduled_message_that_expires_first_is_never_leased(queue: Queue) -> None:
    sent = queue.send(scheduled_at=soon(queue, 20), expires_at=soon(queue, 30))
    pass_time(queue.conn, 31)
    assert queue.dequeue(10) == []
    until(lambda: queue.status(sent).status == "expired" or queue.dequeue(10))


def test_a_message_is_served_until_the_moment_it_expires(queue: Queue) -> None:
    sent = queue.send(scheduled_at=soon(queue, 20), expires_at=soon(queue, 3600))
    pass_time(queue.conn, 3590)
    assert queue.lease().id == sent
