"""The circuit of an endpoint: closed, open, half-open with one probe; and the rest an endpoint asks for."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tests.sql.clock import pass_time
from tests.sql.queue import Queue

HOOK = {"url": "https://example.com/hook"}
TOO_MANY = "[RETRYABLE] HTTP 429 Too Many Requests"


@pytest.fixture
def hook(queue: Queue) -> int:
    queue.call("set_setting", "default_max_retries", "1000")
    queue.call("set_setting", "circuit_breaker_threshold", "3")
    return queue.call("create_endpoint", "hook", "http", HOOK)


def health(queue: Queue, name: str = "hook") -> Any:
    (row,) = queue.rows("get_endpoint_health", name)
    return row


def state(queue: Queue) -> str:
    return health(queue).circuit_state


def events(queue: Queue) -> list[str]:
    rows = queue.all("select event_type from menzil.event_log where event_type like 'circuit.%' order by id")
    return [row.event_type for row in rows]


def open_circuit(queue: Queue, spare: int = 5) -> None:
    queue.send_batch("hook", 3 + spare)
    for message in queue.dequeue(3):
        queue.fail(message)
    assert state(queue) == "open"


def test_a_new_endpoint_is_closed(queue: Queue, hook: int) -> None:
    row = health(queue)
    assert (row.circuit_state, row.circuit_failure_count, row.last_success_at, row.last_failure_at) == (
        "closed",
        0,
        None,
        None,
    )
    assert (row.endpoint_name, row.protocol, row.enabled, row.pending_messages) == ("hook", "http", True, 0)


def test_failures_in_a_row_open_it_and_hold_every_message(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 8)
    for number, message in enumerate(queue.dequeue(3), 1):
        assert state(queue) == "closed"
        queue.fail(message)
        assert health(queue).circuit_failure_count == number
    assert state(queue) == "open"
    assert queue.dequeue(10) == []
    assert health(queue).pending_messages == 8
    assert events(queue) == ["circuit.opened"]


def test_a_batch_of_failures_counts_each(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 3)
    batch = queue.dequeue(3)
    queue.rows("message_fail", [m.id for m in batch], [m.num_attempts for m in batch], ["no"] * 3)
    assert state(queue) == "open"


@pytest.mark.parametrize(("kind", "found"), [("busy", "closed"), ("endpoint", "open")])
def test_a_broker_that_has_no_room_for_messages_does_not_open_it(
    queue: Queue, hook: int, kind: str, found: str
) -> None:
    queue.send_batch("hook", 4)
    batch = queue.dequeue(4)
    ids, attempts = [m.id for m in batch], [m.num_attempts for m in batch]
    responses = [json.dumps({"class": kind})] * 4
    queue.all(
        "select menzil.message_fail(%s::bigint[], %s::bigint[], %s::text[], null, %s::jsonb[])",
        ids,
        attempts,
        ["full"] * 4,
        responses,
    )
    assert state(queue) == found
    assert queue.one("select min(retry_count) from menzil.queue") == 1  # it is a retry in any case


def test_a_success_starts_the_count_again(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 6)
    first, second, good, third, fourth, _ = queue.dequeue(6)
    queue.fail(first)
    queue.fail(second)
    queue.complete(good)  # before anybody folded the failures
    queue.fail(third)
    queue.fail(fourth)
    assert (state(queue), health(queue).circuit_failure_count) == ("closed", 2)


def test_after_the_rest_one_probe_goes_and_its_success_closes(queue: Queue, hook: int) -> None:
    open_circuit(queue)
    pass_time(queue.conn, 29)
    assert queue.dequeue(10) == []
    pass_time(queue.conn, 2)
    (probe,) = queue.dequeue(10)
    assert state(queue) == "half_open"
    assert queue.dequeue(10) == []
    queue.complete(probe)
    assert (state(queue), health(queue).circuit_failure_count) == ("closed", 0)
    assert len(queue.dequeue(20)) == 7
    assert events(queue) == ["circuit.opened", "circuit.half_open", "circuit.closed"]


def test_a_failed_probe_opens_it_again_with_a_fresh_rest(queue: Queue, hook: int) -> None:
    open_circuit(queue)
    pass_time(queue.conn, 31)
    (probe,) = queue.dequeue(10)
    queue.fail(probe)
    assert state(queue) == "open"
    pass_time(queue.conn, 29)
    assert queue.dequeue(10) == []
    pass_time(queue.conn, 2)
    assert len(queue.dequeue(10)) == 1
    assert events(queue) == ["circuit.opened", "circuit.half_open", "circuit.opened", "circuit.half_open"]


def test_only_the_probe_decides_over_a_half_open_circuit(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 8)
    *bad, straggler, slow = queue.dequeue(5)
    for message in bad:
        queue.fail(message)
    queue.complete(straggler)
    assert state(queue) == "open"
    pass_time(queue.conn, 31)
    (probe,) = queue.dequeue(10)
    queue.fail(slow)
    assert state(queue) == "half_open"
    queue.complete(probe)
    assert state(queue) == "closed"


@pytest.mark.parametrize("error", ["[PERMANENT] HTTP 400 Bad Request", "[PERMANENT] [DISABLE] HTTP 410 Gone"])
def test_a_refusal_for_good_neither_counts_nor_resets_and_closes_a_probe(queue: Queue, hook: int, error: str) -> None:
    queue.send_batch("hook", 9)
    for message in queue.dequeue(5):
        queue.fail(message, error)
    assert health(queue).circuit_failure_count == 0
    for message in queue.dequeue(2):
        queue.fail(message)
    queue.fail(queue.lease(), error)
    assert health(queue).circuit_failure_count == 2
    queue.fail(queue.lease())
    pass_time(queue.conn, 31)
    queue.fail(queue.lease(), error)
    assert state(queue) == "closed"


def test_too_many_requests_with_a_time_rest_the_endpoint_and_not_its_circuit(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 10)
    for message in queue.dequeue(5):
        queue.fail(message, TOO_MANY, "120 s")
    assert (state(queue), health(queue).circuit_failure_count) == ("closed", 0)
    assert queue.dequeue(10) == []
    assert health(queue).waits_until is not None
    pass_time(queue.conn, 119)
    assert queue.dequeue(10) == []
    pass_time(queue.conn, 2)
    assert len(queue.dequeue(20)) == 10


@pytest.mark.parametrize(
    ("wait", "seconds"), [(None, 10), ("0", 10), ("1 s", 10), ("10 s", 10), ("120 s", 120), ("30 days", 86_400)]
)
@pytest.mark.parametrize("error", [TOO_MANY, "[RETRYABLE] HTTP 503 Service Unavailable"])
def test_what_the_endpoint_asks_for_never_shortens_the_delay(
    queue: Queue, hook: int, error: str, wait: str | None, seconds: int
) -> None:
    sent = queue.send("hook")
    assert queue.fail(queue.lease(), error, wait) == "retry"
    failed_at = queue.one("select ended_at from menzil.attempts")
    assert (queue.status(sent).next_retry_at - failed_at).total_seconds() == seconds


def test_too_many_requests_with_no_wait_count(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 3)
    for message in queue.dequeue(3):
        queue.fail(message, TOO_MANY, "0")
    assert state(queue) == "open"


def test_too_many_requests_without_a_time_count(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 3)
    for message in queue.dequeue(3):
        queue.fail(message, TOO_MANY)
    assert state(queue) == "open"


def test_unavailable_with_a_time_counts_and_rests(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 4)
    queue.fail(queue.lease(), "[RETRYABLE] HTTP 503 Service Unavailable", "60 s")
    assert health(queue).circuit_failure_count == 1
    assert queue.dequeue(10) == []


def test_a_retry_time_of_a_single_message_does_not_rest_the_endpoint(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 4)
    queue.fail(queue.lease(), "[RETRYABLE] later", "60 s")
    assert len(queue.dequeue(10)) == 3


def test_a_rest_is_at_most_a_day(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 2)
    queue.fail(queue.lease(), TOO_MANY, "30 days")
    pass_time(queue.conn, 86401)
    assert len(queue.dequeue(10)) == 2


def test_a_probe_whose_worker_died_lets_the_next_go_at_once(queue: Queue, hook: int) -> None:
    open_circuit(queue)
    pass_time(queue.conn, 31)
    (probe,) = queue.dequeue(10, lock_ms=1000)
    pass_time(queue.conn, 2)
    assert queue.call("recover_stale_messages") == 1
    (second,) = queue.dequeue(10)
    assert (state(queue), second.id != probe.id or second.num_attempts == probe.num_attempts + 1) == ("half_open", True)


def test_a_probe_that_was_handed_back_lets_the_next_go_at_once(queue: Queue, hook: int) -> None:
    open_circuit(queue)
    pass_time(queue.conn, 31)
    queue.defer(queue.lease())
    assert len(queue.dequeue(10)) == 1


def test_a_lost_worker_is_no_failure_of_the_endpoint(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 5)
    queue.dequeue(5, lock_ms=1000)
    pass_time(queue.conn, 2)
    assert queue.call("recover_stale_messages") == 5
    assert health(queue).circuit_failure_count == 0


def test_opening_touches_no_message(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 50)
    queue.call("maintain")
    waiting = "select xmin::text, ctid::text, n from menzil.run order by 2"
    before = queue.all(waiting)
    for message in queue.dequeue(3):
        queue.fail(message)
    assert queue.dequeue(10) == []
    assert state(queue) == "open"
    # The run that holds the other 47 was not written: only the lane knows that three are gone.
    assert queue.all(waiting) == before
    assert queue.one("select count(*) from menzil.queue where num_attempts = 0") == 47


def test_priorities_share_one_probe(queue: Queue, hook: int) -> None:
    open_circuit(queue, spare=2)
    queue.send("hook", priority=5)
    queue.send("hook", priority=9)
    pass_time(queue.conn, 31)
    (probe,) = queue.dequeue(10)
    assert probe.priority == 9
    assert queue.dequeue(10) == []
    queue.complete(probe)
    assert len(queue.dequeue(10)) == 6


def test_a_plain_channel_has_no_circuit(queue: Queue) -> None:
    queue.call("set_setting", "circuit_breaker_threshold", "3")
    queue.call("channel_set", "work")
    queue.send_batch("work", 20)
    for message in queue.dequeue(10):
        queue.fail(message)
    assert len(queue.dequeue(10)) == 10
    with pytest.raises(psycopg.errors.UndefinedObject):
        queue.rows("get_endpoint_health", "work")


def test_reset_closes_it_and_messages_flow_at_once(queue: Queue, hook: int) -> None:
    open_circuit(queue)
    queue.call("reset_circuit_breaker", "hook")
    assert (state(queue), health(queue).circuit_failure_count) == ("closed", 0)
    assert len(queue.dequeue(20)) == 5
    assert events(queue)[-1] == "circuit.reset"


def test_reset_ends_a_rest(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 2)
    queue.fail(queue.lease(), TOO_MANY, "1 hour")
    assert queue.dequeue(10) == []
    queue.call("reset_circuit_breaker", "hook")
    assert len(queue.dequeue(10)) == 1


def test_results_reported_by_hand_move_it(queue: Queue, hook: int) -> None:
    for number in (1, 2, 3):
        queue.call("update_circuit_breaker", hook, False)
        assert health(queue).circuit_failure_count == number
    assert state(queue) == "open"
    queue.call("update_circuit_breaker", hook, True)
    assert (state(queue), health(queue).circuit_failure_count) == ("closed", 0)
    assert health(queue).last_success_at is not None


def test_the_threshold_and_the_rest_are_settings(queue: Queue) -> None:
    hook = queue.call("create_endpoint", "hook", "http", HOOK)
    for _ in range(9):
        queue.call("update_circuit_breaker", hook, False)
    assert state(queue) == "closed"
    queue.call("update_circuit_breaker", hook, False)
    assert state(queue) == "open"
    opened, probe = queue.one("select opened_at, probe_at from menzil.gate where channel_id = %s", hook)
    assert (probe - opened).total_seconds() == 30
    queue.call("reset_circuit_breaker", "hook")
    queue.call("set_setting", "circuit_breaker_cooldown", "5 min")
    for _ in range(10):
        queue.call("update_circuit_breaker", hook, False)
    opened, probe = queue.one("select opened_at, probe_at from menzil.gate where channel_id = %s", hook)
    assert (probe - opened).total_seconds() == 300


def test_bad_calls_are_refused(queue: Queue, hook: int) -> None:
    for call in (("update_circuit_breaker", 999, True), ("reset_circuit_breaker", "nobody")):
        with pytest.raises(psycopg.errors.UndefinedObject):
            queue.call(*call)
    with pytest.raises(psycopg.errors.NullValueNotAllowed):
        queue.call("update_circuit_breaker", hook, None)


def test_a_disabled_endpoint_holds_what_it_has(queue: Queue, hook: int) -> None:
    queue.send_batch("hook", 2)
    queue.call("disable_endpoint", "hook")
    assert queue.dequeue(10) == []
    queue.call("enable_endpoint", "hook")
    assert len(queue.dequeue(10)) == 2


def test_serving_all_endpoints_leaves_plain_channels_alone(queue: Queue, hook: int) -> None:
    queue.call("channel_set", "work")
    queue.send_batch("work", 3)
    queue.send_batch("hook", 2)
    queue.send("hook", priority=7)
    served = queue.rows("message_dequeue", 60_000, 10, p_endpoints=True)
    assert [(m.channel, m.priority) for m in served] == [("hook", 7), ("hook", 0), ("hook", 0)]
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        queue.rows("message_dequeue", 60_000, 10, ["work"], p_endpoints=True)


def test_endpoints_that_are_left_out_keep_their_messages(queue: Queue, hook: int) -> None:
    queue.call("create_endpoint", "other", "http", {"url": "https://example.com/other"})
    queue.send_batch("hook", 3)
    queue.send("hook", priority=9)
    queue.send_batch("other", 2)
    left_out = {"p_endpoints": True, "p_except": ["hook", "long gone"]}
    assert [m.channel for m in queue.rows("message_dequeue", 60_000, 1, **left_out)] == ["other"]
    (leased,) = queue.rows("message_next", [], [], 60_000, 10, **left_out)
    assert leased.channel == "other"
    assert queue.rows("message_dequeue", 60_000, 10, **left_out) == []
    assert queue.rows("message_dequeue", 60_000, 10, p_endpoints=True, p_except=["hook", "other"]) == []
    served = queue.rows("message_dequeue", 60_000, 10, p_endpoints=True, p_except=[])
    assert [(m.channel, m.priority) for m in served] == [("hook", 9), ("hook", 0), ("hook", 0), ("hook", 0)]
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        queue.rows("message_dequeue", 60_000, 10, p_except=["hook"])


def test_a_health_look_works_in_a_read_only_transaction(queue: Queue, hook: int) -> None:
    with queue.conn.transaction():
        queue.conn.execute("set transaction read only")
        assert state(queue) == "closed"
