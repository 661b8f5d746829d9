"""max_concurrency: never more of a channel in flight than it allows, however the limit is changed."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue, channels, ids


@pytest.fixture
def narrow(queue: Queue) -> Queue:
    queue.call("channel_set", "narrow", 2)
    return queue


def in_flight(queue: Queue, name: str = "narrow") -> int:
    return queue.one("select count(*) from menzil.queue where channel = %s and status = 'processing'", name)


def test_no_more_than_the_limit_are_in_flight(narrow: Queue) -> None:
    sent = narrow.send_batch("narrow", 5)
    taken = narrow.dequeue(10)
    assert ids(taken) == sent[:2]
    assert narrow.dequeue(10) == []
    narrow.complete(taken[0])
    assert ids(narrow.dequeue(10)) == sent[2:3]
    assert narrow.dequeue(10) == []


def test_the_limit_holds_over_many_connections(narrow: Queue, connect) -> None:
    narrow.send_batch("narrow", 10)
    others = [Queue(connect()) for _ in range(4)]
    taken = [message for other in others for message in other.dequeue(5)]
    assert len(taken) == 2


def test_the_limit_counts_all_priorities_and_keys_together(narrow: Queue) -> None:
    for priority in (0, 5, 10):
        narrow.send("narrow", priority=priority)
        narrow.send("narrow", priority=priority, ordering_key=f"k{priority}")
    assert [message.priority for message in narrow.dequeue(10)] == [10, 10]
    assert narrow.dequeue(10) == []


def test_a_batch_is_filled_up_from_other_channels(narrow: Queue) -> None:
    narrow.send_batch("narrow", 20)
    narrow.send_batch("work", 20)
    assert Counter(channels(narrow.dequeue(10))) == {"narrow": 2, "work": 8}


@pytest.mark.parametrize("settle", ["complete", "defer", "fail", "die"])
def test_every_settle_gives_the_slot_back(narrow: Queue, settle: str) -> None:
    narrow.send_batch("narrow", 6)
    for _ in range(3):
        for message in narrow.dequeue(2):
            if settle == "complete":
                narrow.complete(message)
            elif settle == "defer":
                narrow.defer(message, "2099-01-01")
            elif settle == "fail":
                assert narrow.fail(message, retry_after="1 day") == "retry"
            else:
                assert narrow.fail(message, "[PERMANENT]") == "dead"
    assert in_flight(narrow) == 0
    assert narrow.waiting() == [] or settle in ("defer", "fail")


def test_a_settle_that_is_rolled_back_keeps_the_slot(narrow: Queue) -> None:
    narrow.send_batch("narrow", 5)
    taken = narrow.dequeue(2)
    with narrow.conn.transaction(force_rollback=True):
        narrow.complete(*taken)
    assert narrow.dequeue(5) == []


def test_a_stale_settle_gives_no_slot_back(narrow: Queue) -> None:
    narrow.send_batch("narrow", 5)
    stale = narrow.dequeue(2)
    pass_time(narrow.conn, 61)
    assert len(until(lambda: narrow.dequeue(5))) == 2
    assert set(narrow.complete(*stale).values()) == {"stale"}
    assert narrow.dequeue(5) == []


def test_a_limit_set_while_messages_are_in_flight_counts_them(queue: Queue) -> None:
    sent = queue.send_batch("work", 10)
    taken = queue.dequeue(3)
    queue.call("channel_set", "work", 4)
    more = queue.dequeue(5)
    assert ids(more) == sent[3:4]
    queue.complete(*taken[:2])
    assert len(until(lambda: queue.dequeue(5))) == 2
    assert queue.dequeue(5) == []


def test_a_limit_below_what_is_in_flight_waits_until_enough_have_ended(queue: Queue) -> None:
    queue.send_batch("work", 10)
    taken = queue.dequeue(5)
    queue.call("channel_set", "work", 2)
    for n, message in enumerate(taken, 1):
        assert queue.dequeue(5) == [], n
        queue.complete(message)
        if n == 4:
            break
    assert len(until(lambda: queue.dequeue(5))) == 1
    assert queue.dequeue(5) == []


def test_a_lowered_limit_counts_at_once(queue: Queue) -> None:
    queue.call("channel_set", "work", 5)
    queue.send_batch("work", 10)
    taken = queue.dequeue(4)
    queue.call("channel_set", "work", 3)
    assert queue.dequeue(5) == []
    queue.complete(*taken[:2])
    assert len(queue.dequeue(5)) == 1
    assert queue.dequeue(5) == []


def test_a_raised_limit_counts_at_once(narrow: Queue) -> None:
    narrow.send_batch("narrow", 10)
    assert len(narrow.dequeue(10)) == 2
    assert narrow.dequeue(10) == []
    narrow.call("channel_set", "narrow", 5)
    assert len(narrow.dequeue(10)) == 3
    assert narrow.dequeue(10) == []


def test_a_limit_that_is_lifted_lets_everything_go(narrow: Queue) -> None:
    narrow.send_batch("narrow", 10)
    first = narrow.dequeue(10)
    assert narrow.dequeue(10) == []
    narrow.call("channel_set", "narrow")
    assert len(narrow.dequeue(10)) == 8
    narrow.complete(*first)
    narrow.send_batch("narrow", 10)
    narrow.call("channel_set", "narrow", 9)
    assert len(narrow.dequeue(10)) == 1
    assert narrow.dequeue(10) == []


def test_a_limit_set_again_and_again_never_lets_too_many_through(queue: Queue) -> None:
    queue.send_batch("work", 60)
    held: list[object] = []
    for n, limit in enumerate([3, None, 5, 1, None, 8, 2, 4]):
        queue.call("channel_set", "work", limit)
        before = len(held)
        held += queue.dequeue(2 if limit is None else 10)
        if limit is not None:
            assert len(held) == max(before, limit)
        if n % 2:
            queue.complete(held.pop(0))
    assert in_flight(queue, "work") == len(held)


def test_the_channels_view_shows_what_is_in_flight(narrow: Queue) -> None:
    narrow.send_batch("narrow", 3)
    taken = narrow.dequeue(5)
    assert narrow.one("select in_flight from menzil.channels where name = 'narrow'") == 2
    narrow.complete(taken[0])
    narrow.call("maintain")
    assert narrow.one("select in_flight from menzil.channels where name = 'narrow'") == 1
    assert narrow.one("select in_flight from menzil.channels where name = 'work'") is None


def test_limit_key_priority_and_schedule_work_together(narrow: Queue) -> None:
    later = narrow.send(
        "narrow", priority=9, ordering_key="k", scheduled_at=narrow.one("select now() + interval '30 seconds'")
    )
    first, second = narrow.send("narrow", ordering_key="k"), narrow.send("narrow", ordering_key="k")
    free = narrow.send("narrow")
    taken = narrow.dequeue(10)
    assert sorted(ids(taken)) == [first, free]
    pass_time(narrow.conn, 31)
    assert narrow.dequeue(10) == []
    narrow.complete(*taken)
    message = narrow.lease()
    assert message.id == later
    narrow.complete(message)
    assert ids(narrow.dequeue(10)) == [second]
