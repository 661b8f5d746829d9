"""menzil.message_why and menzil.channel_state: what holds a channel is named while it does, and both tell the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue
from tests.sql.test_why import reasons, why

Connect = Callable[..., psycopg.Connection]
HOOK = {"url": "https://example.com/hook"}


@pytest.fixture
def served(queue: Queue) -> Queue:
    queue.call("worker_hello", "w", "host", 1, "0", ["work", "other", "narrow", "(endpoints)"])
    queue.call("create_endpoint", "hook", "http", HOOK)
    queue.call("set_setting", "circuit_breaker_threshold", "3")
    queue.call("set_setting", "default_max_retries", "100")
    return queue


def state(queue: Queue, channel: str = "work") -> Any:
    (row,) = queue.rows("channel_state", channel)
    assert row in queue.rows("channel_state"), "one channel and all of them tell the same"
    return row


def acted(queue: Queue, event: str) -> Any:
    return queue.all("select created_at from menzil.event_log where event_type = %s order by id desc limit 1", event)[
        0
    ][0]


def test_a_channel_that_nothing_holds(served: Queue) -> None:
    sent = served.send()
    row = state(served)
    assert (row.channel, row.is_endpoint, row.held_by, row.held_since, row.held_until) == ("work", False, *[None] * 3)
    assert (row.in_flight, row.max_concurrency, row.rate_used, row.rate_limit, row.next_slot_at) == (0, *[None] * 4)
    assert (row.waiting, row.waiting_by_priority, row.scheduled, row.blocked_keys, row.dead) == (1, {"0": 1}, 0, 0, 0)
    assert (row.oldest_at, row.workers) == (served.status(sent).created_at, 1)
    assert reasons(served, sent) == ["next"]


def test_a_disabled_endpoint_says_since_when_until_it_is_enabled(served: Queue) -> None:
    sent = served.send("hook")
    served.call("disable_endpoint", "hook")
    row = why(served, sent)["endpoint_disabled"]
    assert reasons(served, sent) == ["endpoint_disabled", "next"]
    assert row.since == state(served, "hook").held_since == acted(served, "endpoint.disabled")
    assert row.repair == "menzil endpoint enable hook"
    assert state(served, "hook").held_by == "disabled"
    served.call("enable_endpoint", "hook")
    assert (reasons(served, sent), state(served, "hook").held_by) == (["next"], None)


def test_a_paused_channel_says_since_when_until_it_is_resumed(served: Queue) -> None:
    sent = served.send()
    served.call("channel_pause", "work")
    first = acted(served, "channel.paused")
    served.call("channel_resume", "work")
    served.call("channel_pause", "work")
    row = why(served, sent)["channel_paused"]
    assert reasons(served, sent) == ["channel_paused", "next"]
    assert row.since == state(served).held_since == acted(served, "channel.paused") > first
    assert row.repair == "menzil channel resume work"
    assert (state(served).held_by, state(served).held_until) == ("paused", None)
    assert served.rows("turns") == []
    served.call("channel_resume", "work")
    assert (reasons(served, sent), state(served).held_by) == (["next"], None)


def test_a_paused_endpoint_has_the_command_of_endpoints(served: Queue) -> None:
    sent = served.send("hook")
    served.call("channel_pause", "hook")
    assert why(served, sent)["channel_paused"].repair == "menzil endpoint resume hook"
    assert why(served, sent)["channel_paused"].sentence.startswith("Endpoint 'hook' is paused")


def test_a_name_with_spaces_and_quotes_can_be_pasted_into_a_shell(served: Queue) -> None:
    served.call("channel_set", "it's a $(channel)")
    served.call("channel_set", "-rf")
    for name, repair in (
        ("it's a $(channel)", "menzil channel resume 'it'\\''s a $(channel)'"),
        ("-rf", "menzil channel resume -- -rf"),
    ):
        sent = served.send(name)
        served.call("channel_pause", name)
        assert why(served, sent)["channel_paused"].repair == repair


def test_a_released_channel_is_said_and_holds_nothing(served: Queue) -> None:
    sent, second = served.send(), served.send()
    served.call("channel_release", "work")
    assert reasons(served, sent) == ["channel_released", "next"]
    assert why(served, sent)["next"].sentence == "Its turn is next."
    assert state(served).held_by == "released"
    assert state(served).held_since == why(served, sent)["channel_released"].since
    served.complete(*served.dequeue(2))
    assert reasons(served, second) == ["ended"]


def open_circuit(queue: Queue) -> int:
    sent = queue.send_batch("hook", 5)
    for message in queue.dequeue(3, ["hook"]):
        queue.fail(message, "HTTP 500", "1 hour")
    return sent[-1]


def test_an_open_circuit_says_when_it_is_probed(served: Queue) -> None:
    sent = open_circuit(served)
    for _ in range(2):  # told by the settles, then folded
        row = why(served, sent)["circuit_open"]
        health = served.rows("get_endpoint_health", "hook")[0]
        assert (row.since, row.until) == (health.circuit_opened_at, health.next_probe_at)
        assert "open after 3 failures in a row: one message may probe it at " in row.sentence
        assert row.repair == "menzil endpoint reset hook"
        now = state(served, "hook")
        assert (now.held_by, now.held_since, now.held_until) == ("circuit", row.since, row.until)
        served.call("maintain")
    pass_time(served.conn, 31)
    assert "the next message that is leased probes it" in why(served, sent)["circuit_open"].sentence
    served.call("reset_circuit_breaker", "hook")
    assert "circuit_open" not in reasons(served, sent)
    assert state(served, "hook").held_by is None


def test_a_circuit_that_is_probed_names_the_message(served: Queue) -> None:
    sent = open_circuit(served)
    pass_time(served.conn, 31)
    (probe,) = served.dequeue(5, ["hook"])
    row = why(served, sent)["circuit_probing"]
    assert row.blocked_by == str(probe.id)
    assert f"message {probe.id} probes it" in row.sentence
    assert (state(served, "hook").held_by, state(served, "hook").held_until) == ("circuit", None)
    assert served.rows("turns") == []
    served.complete(probe)
    assert reasons(served, sent) == ["next"], "its success closed the circuit, though no dequeue has heard of it"
    assert state(served, "hook").held_by is None


def test_an_endpoint_that_asked_for_a_rest_says_until_when(served: Queue) -> None:
    sent = served.send_batch("hook", 2)[1]
    served.fail(served.lease(["hook"]), "[RETRYABLE] HTTP 429 Too Many Requests", "90 s")
    row = why(served, sent)["endpoint_resting"]
    assert reasons(served, sent)[0] == "endpoint_resting"
    now = state(served, "hook")
    assert (now.held_by, now.held_since, now.held_until) == ("rest", row.since, row.until)
    assert row.until == served.rows("get_endpoint_health", "hook")[0].waits_until
    assert row.repair == "menzil endpoint reset hook"
    pass_time(served.conn, 91)
    assert "endpoint_resting" not in reasons(served, sent)
    assert state(served, "hook").held_by is None


def test_a_full_channel_says_how_many_are_in_flight(served: Queue) -> None:
    served.call("channel_set", "narrow", 2)
    sent = served.send_batch("narrow", 3)[-1]
    first, second = served.dequeue(5)
    row = why(served, sent)["concurrency_full"]
    assert row.sentence.startswith("Channel 'narrow' has 2 of 2 messages in flight")
    assert row.repair == "menzil channel set narrow --max-concurrency 3"
    now = state(served, "narrow")
    assert (now.held_by, now.in_flight, now.max_concurrency) == ("concurrency", 2, 2)
    served.complete(first)
    assert reasons(served, sent) == ["next"], "a slot came back, though no dequeue has heard of it"
    now = state(served, "narrow")
    assert (now.held_by, now.in_flight) == (None, 1)
    served.complete(second)
    assert served.lease().id == sent


def test_a_lease_that_ran_out_takes_no_slot(served: Queue) -> None:
    served.call("channel_set", "narrow", 1)
    sent = served.send_batch("narrow", 2)[-1]
    served.dequeue(1, lock_ms=1000)
    assert "concurrency_full" in reasons(served, sent)
    pass_time(served.conn, 2)
    assert "concurrency_full" not in reasons(served, sent)
    assert state(served, "narrow").held_by is None


def test_leases_from_before_a_limit_was_set_take_its_slots(served: Queue) -> None:
    sent = served.send_batch("work", 3)[-1]
    leased = served.dequeue(2)
    served.call("channel_set", "work", 2)
    assert "2 of 2 messages in flight" in why(served, sent)["concurrency_full"].sentence
    assert (state(served).held_by, state(served).in_flight) == ("concurrency", 2)
    served.complete(*leased)
    assert reasons(served, sent) == ["next"]


def test_a_rate_that_is_used_up_says_when_the_next_may_go(served: Queue) -> None:
    served.call("channel_set", "narrow", p_release_interval_ms=60_000, p_release_count=2)
    sent = served.send_batch("narrow", 3)[-1]
    assert (state(served, "narrow").rate_used, state(served, "narrow").next_slot_at) == (0, None)
    leased = served.dequeue(5)
    row = why(served, sent)["rate_full"]
    assert row.sentence.startswith("Channel 'narrow' has handed out 2 of 2 messages in 60 s: the next may go at ")
    now = state(served, "narrow")
    assert (now.held_by, now.rate_used, now.rate_limit, now.rate_seconds) == ("rate", 2, 2, 60.0)
    assert now.next_slot_at == now.held_until == row.until
    served.complete(*leased)
    assert "rate_full" in reasons(served, sent)
    pass_time(served.conn, 61)
    assert reasons(served, sent) == ["next"]
    assert (state(served, "narrow").held_by, state(served, "narrow").rate_used) == (None, 0)


def test_a_channel_without_a_worker_says_so_carefully(queue: Queue) -> None:
    sent = queue.send()
    row = why(queue, sent)["no_worker"]
    assert row.sentence == "No live worker serves channel 'work'. Nothing has ever dequeued here."
    assert row.repair == "menzil worker MODULE:APP"
    assert state(queue).workers == 0
    queue.call("worker_hello", "w", "host", 1, "0", ["other"])
    queue.lease()
    sent = queue.send()
    assert "A program that calls message_dequeue itself may" in why(queue, sent)["no_worker"].sentence
    queue.call("worker_stop", "w")
    assert "no_worker" not in reasons(queue, sent), "programs of their own dequeue, and no worker is registered"
    assert state(queue).workers is None, "and channel_state says the same"
    pass_time(queue.conn, 60)
    queue.conn.execute("select setval('menzil.swept_at', 1700000000000000)")
    said = why(queue, sent)["no_worker"].sentence
    assert (
        said == "No live worker serves channel 'work'. The last dequeue of any channel was at 2023-11-14 22:13:20 UTC."
    )
    assert state(queue).workers == 0
    queue.call("worker_hello", "w", "host", 1, "0", ["work"])
    assert reasons(queue, sent) == ["next"]
    assert state(queue).workers == 1
    queue.call("worker_heartbeat", "w", p_stopping=True)
    assert "no_worker" in reasons(queue, sent), "a worker that is stopping takes nothing new"
    gone = why(queue, sent)["no_worker"].since
    assert gone == queue.one("select stopping_at from menzil.worker")


@pytest.mark.parametrize(
    ("channels", "serves"), [(None, True), (["(endpoints)"], True), (["work", "(endpoints)"], True), (["work"], False)]
)
def test_a_worker_of_all_endpoints_serves_each(queue: Queue, channels: list[str] | None, serves: bool) -> None:
    queue.call("create_endpoint", "hook", "http", HOOK)
    sent = queue.send("hook")
    queue.call("worker_hello", "w", "host", 1, "0", channels)
    assert ("no_worker" not in reasons(queue, sent)) is serves
    assert state(queue, "hook").workers == serves


def test_a_lost_worker_serves_nothing(served: Queue) -> None:
    sent = served.send()
    served.conn.execute("update menzil.worker set heartbeat_at = heartbeat_at - interval '31 s'")
    assert why(served, sent)["no_worker"].since == served.one("select heartbeat_at from menzil.worker")
    served.call("worker_heartbeat", "w")
    assert reasons(served, sent) == ["next"]


def test_several_reasons_come_in_the_order_of_their_weight(served: Queue) -> None:
    served.call("channel_set", "hook", 1, p_release_interval_ms=60_000, p_release_count=1)
    head = served.send("hook", ordering_key="k")
    sent = served.send("hook", ordering_key="k", expires_at="2099-01-01+00")
    served.lease()
    served.call("channel_pause", "hook")
    served.call("worker_stop", "w")
    served.conn.execute("select setval('menzil.swept_at', 0)")
    assert reasons(served, sent) == [
        "channel_paused", "behind_key", "concurrency_full", "rate_full", "no_worker", "next", "expires_first",
    ]  # fmt: skip
    assert why(served, sent)["behind_key"].blocked_by == str(head)


def test_an_unknown_channel_is_refused(served: Queue) -> None:
    with pytest.raises(psycopg.errors.UndefinedObject, match="no channel or endpoint named 'wrok'"):
        served.rows("channel_state", "wrok")


def test_counts_of_a_channel(served: Queue) -> None:
    served.call("channel_set", "other", p_on_dead="block")
    served.send_batch("other", 4)
    served.call("maintain")
    served.send("other", priority=7)
    served.send("other", scheduled_at="2099-01-01+00")
    (urgent, *_) = served.dequeue(2, ["other"])
    assert urgent.priority == 7
    served.fail(urgent, "[PERMANENT] no")
    for _ in range(3):
        served.send("other", ordering_key="k", priority=9)
    served.fail(served.dequeue(1, ["other"])[0], "[PERMANENT] no")
    row = state(served, "other")
    assert (row.waiting, row.waiting_by_priority, row.scheduled) == (3 + 2, {"0": 3}, 1)
    assert (row.in_flight, row.dead, row.blocked_keys) == (1, 2, 1)
    gone = served.send("other")
    served.call("message_cancel", gone)
    assert state(served, "other").waiting == 5


def test_a_deep_channel_is_counted_to_the_cap(served: Queue) -> None:
    served.send_batch("work", 12_000)
    for _ in range(2):
        row = state(served)
        assert (row.waiting, row.waiting_by_priority) == (10_001, {"0": 10_001})
        served.call("maintain")


def test_looking_waits_for_nobody_and_writes_nothing(served: Queue, connect: Connect) -> None:
    """An admin, a purge, a cancel and a LOCK TABLE have transactions open: each look answers at once, read-only."""
    served.call("channel_set", "narrow", 1)
    sent = served.send_batch("narrow", 3) + served.send_batch("hook", 3) + [served.send(ordering_key="k")]
    served.fail(served.lease(["narrow"]), "[PERMANENT] no")
    opened = [Queue(connect(autocommit=False)) for _ in range(5)]
    opened[0].call("channel_pause", "hook")
    opened[1].call("channel_purge", "narrow")
    opened[2].call("message_cancel", sent[-1])
    opened[3].call("set_setting", "default_max_retries", "3")
    opened[4].conn.execute("lock table menzil.worker, menzil.dead_letter, menzil.attempt in exclusive mode")
    looking = Queue(connect(autocommit=False))
    looking.conn.execute("set lock_timeout = '20s'; set default_transaction_read_only = on")
    looking.conn.commit()
    for call in (
        *(f"message_why({message})" for message in sent),
        *(f"message_life({message})" for message in sent),
        *(f"message_family({message})" for message in sent),
        "channel_state()", "channel_state('narrow')", "turns(50)",
    ):  # fmt: skip
        assert looking.all(f"select * from menzil.{call}") or call.startswith("turns"), call
    assert looking.one("select pg_current_xact_id_if_assigned() is null")
    locks = looking.all(
        """select l.relation::regclass::text, l.mode from pg_locks l
            where l.pid = pg_backend_pid() and l.locktype = 'relation' and l.mode <> 'AccessShareLock'"""
    )
    assert locks == []
    looking.conn.rollback()
    for one in opened:
        one.conn.rollback()
    assert until(lambda: served.dequeue(10))


def test_all_dead_letters_of_a_channel_are_counted_beside_many_channels(queue: Queue) -> None:
    queue.conn.execute("select count(menzil.channel_set('c' || g)) from generate_series(1, 2000) g")
    queue.send_batch("work", 120)
    for message in queue.dequeue(120, ["work"]):
        queue.fail(message, "[PERMANENT] no")
    assert state(queue).dead == 120, "of each of 2,001 channels 100 rows are read, but letters are read for all at once"
