"""Who goes first: priority, then channels in turn, then due time, then id."""

from __future__ import annotations

from collections import Counter

import pytest
from psycopg.types.json import Jsonb

from tests.sql.clock import pass_time
from tests.sql.queue import Queue, channels, ids


@pytest.fixture
def three(queue: Queue) -> Queue:
    for name in ("a", "b", "c"):
        queue.call("channel_set", name)
    return queue


def test_higher_priorities_go_first(queue: Queue) -> None:
    sent = {priority: queue.send(priority=priority) for priority in (0, 10, 3, 7, 1)}
    assert [queue.lease().id for _ in sent] == [sent[priority] for priority in (10, 7, 3, 1, 0)]


def test_equal_messages_go_by_id(queue: Queue) -> None:
    with queue.conn.transaction():
        sent = [queue.send() for _ in range(5)]
    assert [queue.lease().id for _ in sent] == sent


def test_priority_counts_over_all_channels(three: Queue) -> None:
    low = [three.send(name) for name in ("a", "b")]
    high = three.send("c", priority=1)
    assert three.lease().id == high
    assert sorted(ids(three.dequeue(5))) == low


def test_one_batch_over_many_channels_keeps_strict_priority(three: Queue) -> None:
    for name in ("a", "b", "c"):
        for priority in (0, 5, 10):
            three.call("send_batch_with_priority", name, [Jsonb({})] * 2, priority)
    taken = three.dequeue(18)
    assert [message.priority for message in taken] == [10] * 6 + [5] * 6 + [0] * 6
    for start in (0, 6, 12):
        assert Counter(channels(taken[start : start + 6])) == {"a": 2, "b": 2, "c": 2}


def test_a_batch_that_is_full_leaves_the_lower_priorities(three: Queue) -> None:
    three.send_batch("a", 3)
    urgent = three.call("send_batch_with_priority", "b", [Jsonb({})] * 5, 2)
    assert ids(three.dequeue(4)) == urgent[:4]
    assert three.dequeue(2)[0].id == urgent[4]


def test_channels_take_turns(three: Queue) -> None:
    for name in ("a", "b", "c"):
        three.send_batch(name, 4)
    served = [three.lease().channel for _ in range(12)]
    for turn in range(0, 12, 3):
        assert sorted(served[turn : turn + 3]) == ["a", "b", "c"]


def test_a_batch_is_shared_evenly_by_channels(three: Queue) -> None:
    for name, count in (("a", 100), ("b", 100), ("c", 2)):
        three.send_batch(name, count)
    assert Counter(channels(three.dequeue(30))) == {"a": 14, "b": 14, "c": 2}


def test_a_channel_with_many_messages_does_not_starve_one_with_one(three: Queue) -> None:
    three.send_batch("a", 2000)
    assert three.lease().channel == "a"
    small = three.send("b")
    assert small in [three.lease().id for _ in range(3)]


def test_a_big_channel_is_not_starved_by_many_small_ones(queue: Queue) -> None:
    queue.send_batch("work", 50)
    for n in range(30):
        queue.call("channel_set", f"small-{n}")
        queue.send_batch(f"small-{n}", 5)
    assert "work" in [queue.lease().channel for _ in range(31)]


def test_the_priority_of_one_message_does_not_help_its_channel(three: Queue) -> None:
    three.send("a", priority=9)
    for name in ("a", "b"):
        three.send_batch(name, 10)
    assert three.lease().priority == 9
    assert Counter(channels(three.dequeue(10))) == {"a": 5, "b": 5}


def test_the_message_that_was_due_first_goes_first(queue: Queue) -> None:
    late = queue.one("select menzil.send_with_options('work', '{}', p_scheduled_at := now() + interval '20 seconds')")
    soon = queue.one("select menzil.send_with_options('work', '{}', p_scheduled_at := now() + interval '10 seconds')")
    usual = queue.send()
    pass_time(queue.conn, 60)
    fresh = queue.send()
    assert ids(queue.dequeue(10)) == [usual, soon, late, fresh]


def test_priority_goes_before_due_time(queue: Queue) -> None:
    old = queue.send(scheduled_at="2001-01-01+00")
    urgent = queue.send(priority=1)
    assert ids(queue.dequeue(2)) == [urgent, old]


def test_future_messages_of_high_priority_hold_up_nobody(queue: Queue) -> None:
    queue.conn.execute(
        """select menzil.send_with_options('work', '{}', n % 11, p_scheduled_at := now() + interval '1 hour')
             from generate_series(1, 300) n"""
    )
    sent = queue.send()
    assert queue.lease().id == sent
    assert queue.dequeue(10) == []


def test_a_deferred_message_yields_to_the_others_of_its_channel(queue: Queue) -> None:
    first, second = queue.send(), queue.send()
    served = []
    for _ in range(4):
        message = queue.lease()
        served.append(message.id)
        queue.defer(message)
    assert served == [first, second, first, second]


def test_a_message_deferred_into_the_past_goes_first(queue: Queue) -> None:
    first, second = queue.send(), queue.send()
    message = queue.lease()
    queue.defer(message, "2001-01-01+00")
    assert ids(queue.dequeue(2)) == [first, second]


def test_a_retry_that_is_due_returns_to_the_position_it_had(queue: Queue) -> None:
    sent = [queue.send() for _ in range(20)]
    assert queue.fail(queue.lease(), retry_after="0") == "retry"
    assert ids(queue.dequeue(20)) == sent


def test_retries_of_many_positions_return_to_theirs(queue: Queue) -> None:
    sent = [queue.send() for _ in range(12)] + queue.send_batch("work", 30)
    for message in queue.dequeue(20)[::3]:
        queue.fail(message, retry_after="0")
    left = sent[0:20:3] + sent[20:]
    assert ids(queue.dequeue(5)) == left[:5]
    assert ids(queue.dequeue(100)) == left[5:]


def test_a_late_retry_waits_for_its_time_and_then_goes_first(queue: Queue) -> None:
    sent = [queue.send() for _ in range(3)]
    queue.fail(queue.lease(), retry_after="30 s")
    assert queue.lease().id == sent[1]
    pass_time(queue.conn, 31)
    assert ids(queue.dequeue(2)) == [sent[0], sent[2]]


def test_a_deferred_message_keeps_its_priority(queue: Queue) -> None:
    urgent = queue.send(priority=5)
    queue.send()
    queue.defer(queue.lease())
    assert queue.lease().id == urgent


def test_order_survives_commits_in_between(queue: Queue) -> None:
    sent: list[int] = []
    taken: list[int] = []
    for n in range(1, 8):
        sent += queue.send_batch("work", n)
        taken += ids(queue.dequeue(n - 1)) if n > 1 else []
    taken += ids(queue.dequeue(100))
    assert taken == sent


@pytest.mark.parametrize("left", [1, 3])
def test_a_message_due_between_a_cancelled_one_and_the_next_goes_before_the_next(queue: Queue, left: int) -> None:
    with queue.conn.transaction():  # folded together, so they share a run
        first = queue.send(scheduled_at="2001-01-01+00")
        rest = [queue.send() for _ in range(left)]
    queue.call("maintain")
    assert queue.one("select count(*) from menzil.run") == 1
    assert queue.call("message_cancel", first) is True
    queue.call("maintain")
    between = queue.send(scheduled_at="2002-01-01+00")
    assert [queue.lease().id for _ in range(left + 1)] == [between, *rest]
