"""menzil.message_why where several things come together: the decisive one is first, and nothing misleads."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.sql.clock import pass_time
from tests.sql.queue import Queue
from tests.sql.test_why import reasons, why


@pytest.fixture
def served(queue: Queue) -> Queue:
    queue.call("channel_set", "other")
    queue.call("worker_hello", "w", "host", 1, "0", ["work", "other"], 2)
    return queue


def test_an_expired_message_is_never_said_to_be_next(served: Queue) -> None:
    soon = served.one("select clock_timestamp() + interval '10 s'")
    served.send(ordering_key="k")
    plain, behind = served.send(expires_at=soon), served.send(expires_at=soon, ordering_key="k")
    later = served.send("other", expires_at=soon, scheduled_at=served.one("select clock_timestamp() + interval '5 s'"))
    served.call("channel_pause", "other")
    pass_time(served.conn, 20_000)
    for message in (plain, behind, later):
        assert reasons(served, message) == ["expired"]
        assert why(served, message)["expired"].sentence.endswith("or the dequeue that meets it, ends it.")
    served.call("mark_expired_messages")
    assert reasons(served, plain) == reasons(served, behind) == reasons(served, later) == ["ended"]


def test_a_message_in_flight_is_in_flight_though_it_expired(served: Queue) -> None:
    sent = served.send(expires_at=served.one("select clock_timestamp() + interval '10 s'"))
    served.lease()
    pass_time(served.conn, 20_000)
    assert reasons(served, sent) == ["in_flight"]


def test_workers_that_are_busy_are_not_missing(served: Queue) -> None:
    served.send_batch("work", 2)
    served.dequeue(2, worker="w")
    sent = served.send()
    served.call("worker_heartbeat", "w", 2, 0, 0)
    assert reasons(served, sent) == ["workers_busy", "next"]
    assert why(served, sent)["workers_busy"].sentence == (
        "The only worker that serves 'work' is busy: 2 of 2 slots were in use at the last heartbeat."
    )
    served.call("worker_hello", "v", "host", 2, "0", ["work"], 5)
    assert reasons(served, sent) == ["next"], "another one has room"
    served.call("worker_heartbeat", "v", 5, 0, 0)
    assert "All 2 workers that serve 'work' are busy: 7 of 7" in why(served, sent)["workers_busy"].sentence


def test_a_lost_worker_keeps_its_lease_and_the_end_of_it_is_told(served: Queue) -> None:
    sent = served.send()
    served.dequeue(1, worker="w")
    served.all("update menzil.worker set heartbeat_at = heartbeat_at - interval '5 min' returning 1")
    assert "if it is lost, the message is taken back when the lease ends." in why(served, sent)["in_flight"].sentence


def test_everything_at_once_is_told_in_the_order_of_weight(served: Queue) -> None:
    served.call("channel_set", "work", 1, None, 60_000, 1)
    served.send(ordering_key="k")
    served.dequeue(1, worker="w")
    soon, late = (served.one("select clock_timestamp() + %s * interval '1 s'", n) for n in (30, 45))
    sent = served.send(ordering_key="k", scheduled_at=soon, expires_at=late)
    served.call("channel_pause", "work")
    assert reasons(served, sent) == ["channel_paused", "scheduled", "concurrency_full", "rate_full", "expires_first"]
    assert why(served, sent)["scheduled"].until == soon
    assert why(served, sent)["expires_first"].until == late


def test_what_a_paused_channel_holds_is_not_before_it(served: Queue) -> None:
    sent = served.send()
    for _ in range(3):
        served.send("other", priority=9)
    assert why(served, sent)["waiting_turn"].sentence.endswith("3 of a higher priority in other channels.")
    served.call("channel_pause", "other")
    assert reasons(served, sent) == ["next"], "before a dequeue has read the log"
    served.call("maintain")
    assert reasons(served, sent) == ["next"], "and after it"


def test_a_message_that_no_worker_serves_says_that_it_expires(queue: Queue) -> None:
    soon = queue.one("select clock_timestamp() + interval '1 min'")
    sent = queue.send(expires_at=soon)
    assert reasons(queue, sent) == ["no_worker", "next", "expires_first"]
    assert why(queue, sent)["expires_first"].sentence.endswith("UTC, unless it is leased before.")
    queue.call("worker_hello", "w", "host", 1, "0", ["work"], 2)
    assert reasons(queue, sent) == ["next"]


def test_a_head_that_its_consumer_deferred_is_not_said_to_be_retried(served: Queue) -> None:
    head, behind = served.send(ordering_key="k"), served.send(ordering_key="k")
    served.fail(served.lease(), "ValueError: an earlier try")
    assert "is tried again at" in why(served, behind)["behind_key"].sentence
    served.call("message_retry_now", head)
    tomorrow = served.one("select clock_timestamp() + interval '1 day'")
    served.defer(served.lease(), tomorrow)
    told = why(served, behind)["behind_key"]
    assert told.sentence == (
        f"The consumer of message {head} of its ordering key deferred it to {tomorrow:%Y-%m-%d %H:%M:%S} UTC."
    )
    assert (told.until, told.repair) == (tomorrow, f"menzil message retry-now {head}")


def test_a_rate_that_was_lowered_is_full_until_enough_leases_left_its_window(served: Queue) -> None:
    served.call("channel_set", "work", None, None, 60_000, 10)
    served.send_batch("work", 11)
    for _ in range(2):
        served.dequeue(5)
        pass_time(served.conn, 20)
    (waits,) = served.waiting()
    first, second = served.one("select released_at from menzil.gate where released_at <> '{}'")
    minute = timedelta(minutes=1)
    assert why(served, waits)["rate_full"].until == first + minute
    for count, until in ((6, first), (5, second), (3, second)):
        served.call("channel_set", "work", None, None, 60_000, count)
        assert why(served, waits)["rate_full"].until == until + minute, count
        assert served.rows("channel_state", "work")[0].next_slot_at == until + minute, count
    pass_time(served.conn, 21)
    assert served.dequeue(1) == [], "the first five have left the window, and five of three are still in it"
    assert why(served, waits)["rate_full"].until == second + minute - timedelta(seconds=21)
    pass_time(served.conn, 20)
    assert "rate_full" not in reasons(served, waits)
    assert len(served.dequeue(1)) == 1


def test_a_message_that_came_due_waits_and_is_not_for_later_though_no_dequeue_has_moved_it(served: Queue) -> None:
    soon = served.send(scheduled_at=served.one("select now() + interval '10 s'"))
    served.send(scheduled_at="2099-01-01+00")
    (row,) = served.rows("channel_state", "work")
    assert (row.waiting, row.scheduled, row.oldest_at) == (0, 2, None)
    pass_time(served.conn, 60)
    assert "scheduled" not in why(served, soon)
    for (row,) in (
        served.rows("channel_state", "work"),
        [r for r in served.rows("channel_state") if r.channel == "work"],
    ):
        assert (row.waiting, row.scheduled, row.waiting_by_priority) == (1, 1, {})
        assert row.oldest_at is not None
    served.lease()
    (row,) = served.rows("channel_state", "work")
    assert (row.waiting, row.scheduled, row.in_flight) == (0, 1, 1)
