"""menzil.message_why where several things come together: the decisive one is first, and nothing misleads."""

from __future__ import annotations

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
