"""Release rate: never more than release_count in any window of release_interval_ms, wherever the window starts."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue, channels, ids

LONG = 600_000_000  # a lease that outlives every test


@pytest.fixture
def slow(queue: Queue) -> Queue:
    """A channel that releases three in a hundred seconds."""
    queue.call("channel_set", "slow", p_release_interval_ms=100_000, p_release_count=3)
    return queue


def test_a_batch_takes_no_more_than_the_rate_allows(slow: Queue) -> None:
    sent = slow.send_batch("slow", 10)
    assert ids(slow.dequeue(10, lock_ms=LONG)) == sent[:3]
    assert slow.dequeue(10) == []
    pass_time(slow.conn, 100)
    assert ids(slow.dequeue(10, lock_ms=LONG)) == sent[3:6]


def test_a_batch_is_filled_up_from_other_channels(slow: Queue) -> None:
    slow.send_batch("slow", 10)
    slow.send_batch("work", 10)
    assert Counter(channels(slow.dequeue(10))) == {"slow": 3, "work": 7}


def test_a_window_may_start_anywhere(slow: Queue) -> None:
    slow.send_batch("slow", 20)
    assert len(slow.dequeue(1, lock_ms=LONG)) == 1
    pass_time(slow.conn, 80)
    assert len(slow.dequeue(10, lock_ms=LONG)) == 2
    pass_time(slow.conn, 30)
    # A hundred and ten seconds after the first, but only thirty after the others.
    assert len(slow.dequeue(10, lock_ms=LONG)) == 1
    assert slow.dequeue(10) == []
    pass_time(slow.conn, 70)
    assert len(slow.dequeue(10, lock_ms=LONG)) == 2


@pytest.mark.parametrize("seed", range(5))
def test_no_window_ever_holds_more_than_the_rate(slow: Queue, seed: int) -> None:
    chance = random.Random(seed)
    slow.send_batch("slow", 60)
    passed = timedelta()
    while passed < timedelta(seconds=600):
        slow.dequeue(chance.choice([1, 1, 2, 5]), lock_ms=LONG)
        step = chance.choice([5, 10, 20, 30, 70])
        pass_time(slow.conn, step)
        passed += timedelta(seconds=step)
    # Leases keep the time they began, moved with everything else.
    released = [
        row[0] for row in slow.all("select processing_started_at from menzil.queue where unlock_at is not null")
    ]
    released.sort()
    assert len(released) >= 12
    assert min(fourth - first for first, fourth in zip(released, released[3:], strict=False)) >= timedelta(seconds=100)


def test_settling_does_not_speed_up_a_rate(slow: Queue) -> None:
    slow.send_batch("slow", 10)
    slow.complete(*slow.dequeue(10))
    assert slow.dequeue(10) == []


def test_retries_and_defers_count_as_releases(slow: Queue) -> None:
    slow.send("slow")
    for _ in range(3):
        slow.defer(slow.lease())
    assert slow.dequeue(10) == []
    pass_time(slow.conn, 100)
    assert len(slow.dequeue(10)) == 1


def test_lost_leases_come_back_at_the_rate(slow: Queue) -> None:
    slow.send_batch("slow", 3)
    assert len(slow.dequeue(5, lock_ms=1_000)) == 3
    pass_time(slow.conn, 2)
    assert slow.dequeue(5) == []
    pass_time(slow.conn, 98)
    assert len(until(lambda: slow.dequeue(5))) == 3


def test_all_priorities_share_the_rate(slow: Queue) -> None:
    for priority in range(10):
        slow.send("slow", priority=priority)
    assert [message.priority for message in slow.dequeue(10, lock_ms=LONG)] == [9, 8, 7]
    pass_time(slow.conn, 100)
    assert [message.priority for message in slow.dequeue(10, lock_ms=LONG)] == [6, 5, 4]


def test_a_rate_set_on_a_running_channel_counts_from_then_on(queue: Queue) -> None:
    queue.send_batch("work", 20)
    assert len(queue.dequeue(5, lock_ms=LONG)) == 5
    queue.call("channel_set", "work", p_release_interval_ms=10_000, p_release_count=2)
    assert len(queue.dequeue(10)) == 2
    assert queue.dequeue(10) == []


def test_a_raised_rate_counts_at_once(slow: Queue) -> None:
    slow.send_batch("slow", 20)
    assert len(slow.dequeue(10)) == 3
    assert slow.dequeue(10) == []
    slow.call("channel_set", "slow", p_release_interval_ms=100_000, p_release_count=5)
    assert len(slow.dequeue(10)) == 2
    assert slow.dequeue(10) == []
    slow.call("channel_set", "slow")
    assert len(slow.dequeue(10)) == 10


def test_rate_and_concurrency_hold_together(queue: Queue) -> None:
    queue.call("channel_set", "both", 2, p_release_interval_ms=10_000, p_release_count=3)
    queue.send_batch("both", 10)
    taken = queue.dequeue(10)
    assert len(taken) == 2
    queue.complete(*taken)
    taken = queue.dequeue(10)
    assert len(taken) == 1
    queue.complete(*taken)
    assert queue.dequeue(10) == []
    pass_time(queue.conn, 10)
    assert len(queue.dequeue(10)) == 2


def test_a_rolled_back_dequeue_used_nothing_of_the_rate(slow: Queue) -> None:
    slow.send_batch("slow", 10)
    with slow.conn.transaction(force_rollback=True):
        assert len(slow.dequeue(10)) == 3
    assert len(slow.dequeue(10)) == 3


def test_a_short_interval_is_kept_by_the_real_clock(queue: Queue) -> None:
    queue.call("channel_set", "fast", p_release_interval_ms=60, p_release_count=1)
    queue.send_batch("fast", 4)
    taken: list[object] = []
    until(lambda: taken.extend(queue.dequeue(4)) or len(taken) == 4)
    starts = [row[0] for row in queue.all("select processing_started_at from menzil.queue order by 1")]
    assert all((late - early).total_seconds() >= 0.06 for early, late in pairwise(starts))


def test_many_small_releases_in_one_interval_are_all_counted(queue: Queue) -> None:
    queue.call("channel_set", "wide", p_release_interval_ms=3_600_000, p_release_count=100)
    queue.send_batch("wide", 150)
    taken = [message for _ in range(150) for message in queue.dequeue(1, lock_ms=LONG)]
    assert len(taken) == 100


def test_many_small_releases_leave_the_window_when_their_time_is_over(queue: Queue) -> None:
    queue.call("channel_set", "wide", p_release_interval_ms=3_600_000, p_release_count=100)
    queue.send_batch("wide", 300)
    for _ in range(4):  # 80 in an hour
        assert sum(len(queue.dequeue(1, lock_ms=LONG)) for _ in range(40)) == 40
        pass_time(queue.conn, 1800)
    assert sum(row.messages for row in queue.rows("channel_window", "wide")) == 40
    assert sum(len(queue.dequeue(1, lock_ms=LONG)) for _ in range(70)) == 60


def test_window_tells_the_leases_in_it(slow: Queue) -> None:
    slow.send_batch("slow", 20)
    slow.dequeue(1, lock_ms=LONG)
    pass_time(slow.conn, 80)
    slow.dequeue(10, lock_ms=LONG)
    first, second = slow.rows("channel_window", "slow")
    assert (first.messages, second.messages) == (1, 2)
    assert timedelta(seconds=79) < second.at - first.at < timedelta(seconds=85)
    pass_time(slow.conn, 30)
    assert [row.messages for row in slow.rows("channel_window", "slow")] == [2], "the first one has left it"
    assert slow.rows("channel_window", "work") == [], "it has no rate limit"
