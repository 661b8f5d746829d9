"""Leases: (id, attempt) is the token. Who lost it may not settle, who lives may extend it, what is lost comes back."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue, ids

SETTLES = {
    "complete": "select menzil.message_complete(%s, %s)",
    "defer": "select menzil.message_defer(%s, %s)",
    "fail": "select menzil.message_fail(%s, %s, 'no')",
    "heartbeat": "select menzil.message_heartbeat(%s, %s, 1000)",
}


def refused(queue: Queue, settle: str, message: int, attempt: int) -> str:
    with pytest.raises(psycopg.Error) as error:
        queue.one(SETTLES[settle], message, attempt)
    assert error.value.diag.message_hint
    return error.value.sqlstate


@pytest.mark.parametrize("settle", SETTLES)
def test_a_lease_that_was_overtaken_is_stale(queue: Queue, settle: str) -> None:
    sent = queue.send()
    first = queue.lease()
    pass_time(queue.conn, 61)
    second = queue.lease()
    assert (second.id, second.num_attempts) == (sent, 2)
    assert refused(queue, settle, first.id, first.num_attempts) == "MZ001"
    assert queue.complete(second) == {sent: "settled"}


@pytest.mark.parametrize("settle", SETTLES)
def test_a_lease_that_was_taken_back_is_stale(queue: Queue, settle: str) -> None:
    queue.send()
    message = queue.lease()
    pass_time(queue.conn, 61)
    assert queue.call("recover_stale_messages") == 1
    assert refused(queue, settle, message.id, message.num_attempts) == "MZ001"


@pytest.mark.parametrize("settle", SETTLES)
def test_a_message_that_ended_is_not_in_flight(queue: Queue, settle: str) -> None:
    queue.send()
    message = queue.lease()
    queue.complete(message)
    assert refused(queue, settle, message.id, message.num_attempts) == "MZ002"


@pytest.mark.parametrize("settle", SETTLES)
def test_a_message_that_was_never_leased_is_not_in_flight(queue: Queue, settle: str) -> None:
    sent = queue.send()
    assert refused(queue, settle, sent, 1) == "MZ002"
    assert refused(queue, settle, 987_654_321, 1) == "MZ002"


@pytest.mark.parametrize("settle", SETTLES)
@pytest.mark.parametrize("attempt", [0, 2, -1])
def test_a_wrong_attempt_number_settles_nothing(queue: Queue, settle: str, attempt: int) -> None:
    queue.send()
    message = queue.lease()
    assert refused(queue, settle, message.id, attempt) == "MZ001"
    assert queue.complete(message) == {message.id: "settled"}


def test_only_one_of_two_settles_with_the_same_token_counts(queue: Queue) -> None:
    queue.send()
    message = queue.lease()
    queue.defer(message)
    assert refused(queue, "complete", message.id, message.num_attempts) == "MZ001"
    assert queue.lease().num_attempts == 2


def test_a_settle_after_the_lease_ran_out_counts_while_nobody_took_it_back(queue: Queue) -> None:
    sent = queue.send()
    message = queue.lease()
    pass_time(queue.conn, 61)
    assert queue.complete(message) == {sent: "settled"}


def test_an_array_of_settles_tells_what_happened_to_each(queue: Queue) -> None:
    sent = queue.send_batch("work", 4)
    first = queue.dequeue(4)
    queue.complete(first[0])
    pass_time(queue.conn, 61)
    again = {message.id: message for message in queue.dequeue(1)}
    taken = [first[1].id, first[2].id, first[3].id]
    overtaken = next(iter(again))
    assert overtaken in taken
    outcomes = queue.complete(*first)
    assert outcomes[sent[0]] == "unknown"
    assert outcomes[overtaken] == "stale"
    assert set(outcomes) == set(sent)
    assert queue.complete(*again.values()) == {overtaken: "settled"}


@pytest.mark.parametrize("function", ["message_complete", "message_defer", "message_heartbeat", "message_fail"])
def test_each_array_form_answers_once_per_id(queue: Queue, function: str) -> None:
    sent = queue.send_batch("work", 3)
    queue.complete(queue.lease())
    queue.dequeue(1)
    more = {"message_heartbeat": ", 1000", "message_fail": ", array['a', 'b', 'c', 'd']"}.get(function, "")
    rows = queue.all(
        f"select id, outcome from menzil.{function}(%s::bigint[], array[1, 1, 1, 1]::bigint[]{more})", [*sent, sent[1]]
    )
    settled = "retry" if function == "message_fail" else "settled"
    assert sorted(rows) == [(sent[0], "unknown"), (sent[1], settled), (sent[2], "unknown")]


def test_what_comes_with_a_stale_lease_is_not_taken_for_the_live_one(queue: Queue) -> None:
    failing, waiting = queue.send_batch("work", 2)
    queue.all("select * from menzil.message_defer(%s::bigint[], array[1, 1]::bigint[])", ids(queue.dequeue(2)))
    assert [message.num_attempts for message in queue.dequeue(2)] == [2, 2]
    both = "array[%s, %s]::bigint[], array[1, 2]::bigint[]"
    queue.all(f"select * from menzil.message_fail({both}, array['[PERMANENT] old', 'new'])", failing, failing)
    row = queue.status(failing)
    assert (row.status, row.last_error) == ("pending", "new")
    late = f"menzil.message_defer({both}, array['2099-01-01', null]::timestamptz[], array['old', 'new']::bytea[])"
    queue.all(f"select * from {late}", waiting, waiting)
    message = queue.lease()
    assert (message.id, message.state) == (waiting, b"new")


@pytest.mark.parametrize("function", ["message_complete", "message_defer", "message_heartbeat", "message_fail"])
def test_an_empty_array_settles_nothing(queue: Queue, function: str) -> None:
    more = {"message_heartbeat": ", 1000", "message_fail": ", '{}'::text[]"}.get(function, "")
    assert queue.all(f"select * from menzil.{function}('{{}}'::bigint[], '{{}}'::bigint[]{more})") == []


def test_a_heartbeat_moves_the_end_of_the_lease(queue: Queue) -> None:
    queue.send()
    message = queue.lease(lock_ms=10_000)
    queue.heartbeat(message, 60_000)
    pass_time(queue.conn, 30)
    assert queue.dequeue() == []
    assert queue.call("recover_stale_messages") == 0
    pass_time(queue.conn, 31)
    assert queue.lease().num_attempts == 2


def test_a_heartbeat_never_shortens_a_lease(queue: Queue) -> None:
    queue.send()
    message = queue.lease(lock_ms=60_000)
    queue.heartbeat(message, 1)
    assert queue.one("select unlock_at from menzil.queue") == message.unlock_at
    pass_time(queue.conn, 30)
    assert queue.dequeue() == []


def test_a_lease_extended_many_times_stays_on_watch(queue: Queue) -> None:
    sent = queue.send()
    message = queue.lease(lock_ms=60_000)
    for _ in range(4):
        queue.heartbeat(message, 60_000)
        pass_time(queue.conn, 40)
        assert queue.call("recover_stale_messages") == 0
        assert queue.dequeue() == []
    pass_time(queue.conn, 20)
    message = queue.lease()
    assert (message.id, message.num_attempts) == (sent, 2)


def test_a_heartbeat_for_many_says_which_are_lost(queue: Queue) -> None:
    kept, lost = queue.send(), queue.send()
    messages = queue.dequeue(2)
    queue.complete(messages[1])
    rows = queue.all("select * from menzil.message_heartbeat(%s::bigint[], array[1, 1]::bigint[], 5000)", ids(messages))
    assert sorted(rows) == [(kept, "settled"), (lost, "unknown")]


def test_a_lost_lease_makes_the_message_due_at_once(queue: Queue) -> None:
    sent = queue.send()
    queue.lease()
    pass_time(queue.conn, 61)
    message = queue.lease()
    assert (message.id, message.num_attempts, message.retry_count) == (sent, 2, 1)
    assert "lease" in queue.status(sent).last_error


def test_a_short_lease_is_lost_by_the_real_clock(queue: Queue) -> None:
    sent = queue.send()
    assert queue.lease(lock_ms=50).id == sent
    (message,) = until(queue.dequeue)
    assert (message.id, message.num_attempts) == (sent, 2)


def test_a_lost_lease_counts_against_the_retry_budget(queue: Queue) -> None:
    queue.call("set_setting", "default_max_retries", "2")
    sent = queue.send()
    for attempt in (1, 2, 3):
        assert queue.lease().num_attempts == attempt
        pass_time(queue.conn, 61)
    assert queue.dequeue() == []
    assert queue.status(sent).status == "failed"
    assert queue.one("select original_message_id, retry_count, num_attempts from menzil.dlq") == (sent, 2, 3)


def test_a_lost_lease_returns_to_its_position_until_its_retries_are_used(queue: Queue) -> None:
    queue.call("set_setting", "default_max_retries", "2")
    crashing, fresh = queue.send(), queue.send()
    for attempt in (1, 2, 3):
        message = queue.lease()
        assert (message.id, message.num_attempts) == (crashing, attempt)
        pass_time(queue.conn, 61)
    assert queue.lease().id == fresh
    assert queue.status(crashing).status == "failed"


def test_order_survives_a_lost_lease_on_a_channel_of_concurrency_one(queue: Queue) -> None:
    queue.call("channel_set", "work", 1)
    sent = queue.send_batch("work", 5)
    queue.dequeue(5)
    pass_time(queue.conn, 61)
    served = []
    for _ in sent:
        (message,) = queue.dequeue(5)
        served.append(message.id)
        queue.complete(message)
    assert served == sent


def test_lost_leases_of_one_channel_do_not_starve_another(queue: Queue) -> None:
    queue.call("channel_set", "other")
    queue.send_batch("work", 20)
    queue.dequeue(20)
    pass_time(queue.conn, 61)
    sent = queue.send("other")
    assert sent in [queue.lease().id for _ in range(3)]


def test_the_janitor_takes_back_what_nobody_dequeues(queue: Queue) -> None:
    queue.send_batch("work", 3)
    queue.dequeue(2)
    assert queue.call("recover_stale_messages") == 0
    pass_time(queue.conn, 61)
    assert queue.call("recover_stale_messages") == 2
    assert queue.call("recover_stale_messages") == 0
    assert len(queue.waiting()) == 3


def test_a_lost_lease_that_was_noted_long_ago_is_found_by_the_sweep(queue: Queue) -> None:
    sent = queue.send()
    queue.lease()
    pass_time(queue.conn, 100_000)
    assert queue.lease().id == sent


def test_a_lost_lease_gives_its_slot_back(queue: Queue) -> None:
    queue.call("channel_set", "work", 1)
    queue.send_batch("work", 2)
    queue.lease()
    assert queue.dequeue() == []
    pass_time(queue.conn, 61)
    assert len(until(lambda: queue.dequeue(5))) == 1
    assert queue.dequeue(5) == []


def test_a_lease_shows_in_the_queue_until_it_is_settled(queue: Queue) -> None:
    sent = queue.send()
    message = queue.lease()
    row = queue.one("select id, status, num_attempts, unlock_at, processing_started_at from menzil.queue")
    assert row[:4] == (sent, "processing", 1, message.unlock_at)
    assert row.processing_started_at + timedelta(minutes=1) == message.unlock_at
    queue.defer(message)
    row = queue.one("select status, num_attempts, unlock_at, processing_started_at from menzil.queue")
    assert row == ("pending", 1, None, None)
