"""Ordering keys: one message of a key in flight at a time, in the order of their ids."""

from __future__ import annotations

import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue, ids


def keyed(queue: Queue, count: int = 3, key: str = "k", channel: str = "work") -> list[int]:
    return [queue.send(channel, ordering_key=key) for _ in range(count)]


def test_messages_of_one_key_are_served_one_at_a_time_in_order(queue: Queue) -> None:
    sent = keyed(queue, 4)
    for expected in sent:
        (message,) = queue.dequeue(10)
        assert message.id == expected
        assert queue.dequeue(10) == []
        queue.complete(message)
    assert queue.dequeue(10) == []


def test_different_keys_do_not_wait_for_each_other(queue: Queue) -> None:
    heads = [keyed(queue, 2, key)[0] for key in ("x", "y", "z")]
    free = queue.send()
    assert sorted(ids(queue.dequeue(10))) == sorted([*heads, free])


def test_the_same_key_in_another_channel_is_another_key(queue: Queue) -> None:
    queue.call("channel_set", "other")
    heads = [keyed(queue, 2, "k", channel)[0] for channel in ("work", "other")]
    assert sorted(ids(queue.dequeue(10))) == sorted(heads)


def test_fifo_beats_priority_within_a_key(queue: Queue) -> None:
    first = queue.send(ordering_key="k")
    second = queue.send(ordering_key="k", priority=10)
    message = queue.lease()
    assert message.id == first
    queue.complete(message)
    assert queue.lease().id == second


def test_a_retry_keeps_its_key_blocked(queue: Queue) -> None:
    first, second = keyed(queue, 2)
    assert queue.fail(queue.lease()) == "retry"
    assert queue.dequeue(10) == []
    pass_time(queue.conn, 11)
    message = queue.lease()
    assert (message.id, message.num_attempts) == (first, 2)
    queue.complete(message)
    assert queue.lease().id == second


def test_a_defer_keeps_its_key_blocked(queue: Queue) -> None:
    first, second = keyed(queue, 2)
    queue.defer(queue.lease(), queue.one("select now() + interval '1 hour'"))
    assert queue.dequeue(10) == []
    pass_time(queue.conn, 3601)
    message = queue.lease()
    assert message.id == first
    queue.defer(message)
    message = queue.lease()
    assert message.id == first
    queue.complete(message)
    assert queue.lease().id == second


def test_a_lost_lease_keeps_its_key_blocked(queue: Queue) -> None:
    first, second = keyed(queue, 2)
    queue.lease()
    pass_time(queue.conn, 61)
    message = queue.lease()
    assert (message.id, message.num_attempts) == (first, 2)
    assert queue.dequeue(10) == []
    queue.complete(message)
    assert queue.lease().id == second


def test_a_scheduled_message_joins_its_key_when_it_is_due(queue: Queue) -> None:
    later = queue.send(ordering_key="k", scheduled_at=queue.one("select now() + interval '30 seconds'"))
    now = queue.send(ordering_key="k")
    message = queue.lease()
    assert message.id == now
    pass_time(queue.conn, 31)
    assert queue.dequeue(10) == []
    queue.complete(message)
    assert queue.lease().id == later


def test_a_due_message_with_a_lower_id_goes_before_those_that_wait(queue: Queue) -> None:
    later = queue.send(ordering_key="k", scheduled_at=queue.one("select now() + interval '10 seconds'"))
    head, behind = keyed(queue, 2)
    message = queue.lease()
    assert message.id == head
    pass_time(queue.conn, 11)
    assert queue.dequeue(10) == []
    queue.complete(message)
    served = []
    for _ in range(2):
        message = queue.lease()
        served.append(message.id)
        queue.complete(message)
    assert served == [later, behind]


def test_an_expired_message_does_not_block_its_key(queue: Queue) -> None:
    expiring = queue.send(ordering_key="k", expires_at=queue.one("select now() + interval '10 seconds'"))
    second = queue.send(ordering_key="k")
    pass_time(queue.conn, 11)
    (message,) = until(lambda: queue.dequeue(10))
    assert message.id == second
    assert queue.status(expiring).status == "expired"


def test_the_dequeue_that_ends_an_expired_head_leases_the_next_of_its_key(queue: Queue) -> None:
    soon = queue.one("select now() + interval '10 seconds'")
    expiring = [queue.send(ordering_key="k", expires_at=soon) for _ in range(3)]
    last = queue.send(ordering_key="k")
    pass_time(queue.conn, 11)
    (message,) = queue.dequeue(10)
    assert message.id == last
    assert {queue.status(id).status for id in expiring} == {"expired"}


def test_an_expired_head_does_not_hide_the_next_of_its_key_while_a_cancel_is_young(queue: Queue) -> None:
    soon = queue.one("select now() + interval '10 seconds'")
    cancelled = queue.send(ordering_key="k")
    expiring = [queue.send(ordering_key="k", expires_at=soon) for _ in range(3)]
    living = queue.send(ordering_key="k")
    assert queue.call("message_cancel", cancelled) is True
    pass_time(queue.conn, 11)
    assert queue.lease().id == living
    assert {queue.status(id).status for id in expiring} == {"expired"}


def test_an_expired_message_behind_the_head_does_not_block_either(queue: Queue) -> None:
    head = queue.send(ordering_key="k")
    expiring = queue.send(ordering_key="k", expires_at=queue.one("select now() + interval '10 seconds'"))
    last = queue.send(ordering_key="k")
    message = queue.lease()
    assert message.id == head
    pass_time(queue.conn, 11)
    queue.complete(message)
    (message,) = until(lambda: queue.dequeue(10))
    assert message.id == last
    assert queue.status(expiring).status == "expired"


def test_a_message_that_expires_while_it_waits_for_its_retry_does_not_block_its_key(queue: Queue) -> None:
    expiring = queue.send(ordering_key="k", expires_at=queue.one("select now() + interval '10 seconds'"))
    second = queue.send(ordering_key="k")
    assert queue.fail(queue.lease(), retry_after="1 hour") == "retry"
    pass_time(queue.conn, 11)
    (message,) = until(lambda: queue.dequeue(10))
    assert message.id == second
    assert queue.status(expiring).status == "expired"


def test_a_dead_head_lets_the_rest_go_on(queue: Queue) -> None:
    _, second = keyed(queue, 2)
    assert queue.fail(queue.lease(), "[PERMANENT] no") == "dead"
    assert queue.lease().id == second


def test_a_dead_head_holds_the_rest_when_the_channel_says_so(queue: Queue) -> None:
    queue.call("channel_set", "work", p_on_dead="block")
    dead, second = keyed(queue, 2)
    other = keyed(queue, 1, "other")
    assert queue.fail(queue.lease(), "[PERMANENT] no") == "dead"
    third = queue.send(ordering_key="k")
    assert ids(queue.dequeue(10)) == other
    assert queue.one("select blocks_key from menzil.dlq where original_message_id = %s", dead) is True
    assert queue.call("message_cancel", dead) is True
    message = queue.lease()
    assert message.id == second
    queue.complete(message)
    assert queue.lease().id == third
    assert queue.status(dead).status == "failed"


def test_a_head_that_dies_of_lost_leases_holds_the_rest_too(queue: Queue) -> None:
    queue.call("channel_set", "work", p_on_dead="block")
    queue.call("set_setting", "default_max_retries", "0")
    dead, second = keyed(queue, 2)
    queue.lease()
    pass_time(queue.conn, 61)
    assert queue.dequeue(10) == []
    assert queue.status(dead).status == "failed"
    assert queue.call("message_cancel", dead) is True
    assert queue.call("message_cancel", dead) is False
    assert queue.lease().id == second


def test_a_message_without_a_key_blocks_nothing_when_it_dies(queue: Queue) -> None:
    queue.call("channel_set", "work", p_on_dead="block")
    queue.send()
    assert queue.fail(queue.lease(), "[PERMANENT] no") == "dead"
    assert queue.one("select blocks_key from menzil.dlq") is False
    sent = keyed(queue, 1)
    assert ids(queue.dequeue(10)) == sent


@pytest.mark.parametrize("position", [0, 1, 2])
def test_cancelling_a_waiting_message_closes_the_gap(queue: Queue, position: int) -> None:
    sent = keyed(queue, 3)
    if position == 0:
        # Once somebody has looked, the head of the key stands among the ready ones.
        queue.call("channel_pause", "work")
        assert queue.dequeue(10) == []
        queue.call("channel_resume", "work")
    assert queue.call("message_cancel", sent.pop(position)) is True
    for expected in sent:
        (message,) = until(lambda: queue.dequeue(10))
        assert message.id == expected
        queue.complete(message)
    assert queue.waiting() == []


def test_cancelling_a_message_that_waits_for_its_retry_frees_its_key(queue: Queue) -> None:
    first, second = keyed(queue, 2)
    assert queue.fail(queue.lease()) == "retry"
    assert queue.call("message_cancel", first) is True
    assert queue.lease().id == second


def test_a_head_that_commits_late_still_goes_before_what_waits(queue: Queue, connect) -> None:
    running = queue.send(ordering_key="k")
    message = queue.lease()
    assert message.id == running
    slow = Queue(connect(autocommit=False))
    late = slow.send(ordering_key="k")
    quick = queue.send(ordering_key="k")
    slow.conn.commit()
    queue.complete(message)
    message = queue.lease()
    assert message.id == late
    queue.complete(message)
    assert queue.lease().id == quick


def test_keys_of_any_text_stay_apart(queue: Queue) -> None:
    keys = ["k", "K", " k", "k ", "'; drop table menzil.message --", "ключ", "\n", "k" * 1024]
    heads = [keyed(queue, 2, key)[0] for key in keys]
    assert sorted(ids(queue.dequeue(100))) == sorted(heads)


def test_a_key_that_drained_starts_anew(queue: Queue) -> None:
    for _ in range(3):
        (sent,) = keyed(queue, 1)
        message = queue.lease()
        assert message.id == sent
        queue.complete(message)
    assert queue.one("select count(*) from menzil.key_queue") == 0


def test_a_long_key_is_drained_in_order_among_others(queue: Queue) -> None:
    sent: dict[str, list[int]] = {key: [] for key in "abcde"}
    for n in range(100):
        sent["abcde"[n * n % 5]].append(queue.send(ordering_key="abcde"[n * n % 5]))
    served: dict[str, list[int]] = {key: [] for key in "abcde"}
    while taken := queue.dequeue(3):
        for message in taken:
            served[message.ordering_key].append(message.id)
        queue.complete(*taken)
    assert served == sent
