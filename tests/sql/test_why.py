"""menzil.message_why: each thing that a message can wait for is named while it is so, and no longer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, timedelta
from typing import Any

import psycopg
import pytest

from tests.sql.clock import created_at, pass_time, until
from tests.sql.queue import Queue, ids
from tests.sql.test_views_agree import Play

Connect = Callable[..., psycopg.Connection]


def why(queue: Queue, message: int) -> dict[str, Any]:
    """The rows by reason, in their order."""
    rows = queue.rows("message_why", message)
    assert [row.rank for row in rows] == list(range(1, len(rows) + 1))
    assert all(row.sentence.endswith(".") and "%" not in row.sentence and ".." not in row.sentence for row in rows)
    assert len({row.reason for row in rows}) == len(rows)
    return {row.reason: row for row in rows}


def reasons(queue: Queue, message: int) -> list[str]:
    return list(why(queue, message))


@pytest.fixture
def served(queue: Queue) -> Queue:
    """A queue with a worker that serves everything, so that nothing is said about workers."""
    queue.call("worker_hello", "w", "host", 1, "0", ["work", "(endpoints)", "other", "narrow", "strict"])
    return queue


@pytest.fixture
def sentence_zone(queue: Queue) -> Iterator[None]:
    """A session far from UTC: sentences do not change with it."""
    queue.conn.execute("set timezone = 'Pacific/Kiritimati'")
    yield
    queue.conn.execute("reset timezone")


def test_an_id_that_was_never_given_out_is_unknown(served: Queue) -> None:
    assert why(served, 1)["unknown"].sentence == "Message 1 was never sent: no message was sent yet."
    last = served.send()
    assert why(served, last + 1)["unknown"].sentence == f"Message 2 was never sent: the highest id so far is {last}."
    assert why(served, 0)["unknown"].sentence == "Message 0 was never sent: ids begin with 1."
    assert reasons(served, -(2**63)) == reasons(served, 2**63 - 1) == ["unknown"]
    assert reasons(served, last) == ["next"]


def test_a_message_of_an_open_transaction_is_unknown_until_it_commits(served: Queue, connect: Connect) -> None:
    sender = Queue(connect(autocommit=False))
    sent = sender.send()
    served.send()
    assert "or is still open" in why(served, sent)["unknown"].sentence
    sender.conn.commit()
    assert reasons(served, sent) == ["next"]


def test_a_message_that_was_rolled_back_is_not_said_to_be_open(served: Queue, connect: Connect) -> None:
    before = served.send()
    sender = Queue(connect(autocommit=False))
    sent = sender.send()
    sender.conn.rollback()
    served.send()
    said = why(served, sent)["unknown"].sentence
    assert said == f"Message {sent} is not here: its transaction was rolled back, or it was cleaned up."
    assert sent > before


def test_a_message_that_was_cleaned_up_is_older_than_what_is_kept(served: Queue) -> None:
    old = served.send()
    served.complete(served.lease())
    created_at(served.conn, old, "2019-05-05")
    kept = served.send()
    assert reasons(served, old) == ["ended"]
    assert served.call("cleanup_old_archive_partitions") == 1
    said = why(served, old)["unknown"].sentence
    assert f"older than the oldest message that is kept ({kept})" in said
    assert "cleaned up" in said


def test_a_message_that_died_of_a_lost_lease_says_so_in_one_sentence(served: Queue) -> None:
    sent = served.send()
    served.call("set_retry_policy", "work", {"max_retries": 0})
    served.lease(lock_ms=1_000)
    pass_time(served.conn, 2)
    until(lambda: served.dequeue() == [] and served.status(sent).status == "failed")
    assert "after 1 try: The lease expired before the message was settled. It is" in why(served, sent)["ended"].sentence


def test_it_says_how_a_message_ended(served: Queue) -> None:
    served.call("set_setting", "default_max_retries", "0")
    done, dead, gone, late = (served.send(), served.send(), served.send(), served.send(expires_at="2099-01-01+00"))
    first = served.rows("message_dequeue", 60_000, 1, None, "ada's worker")[0]
    assert reasons(served, done) == ["in_flight"]
    served.complete(first)
    assert re.fullmatch(
        r"It completed at [0-9: -]+ UTC in try 1 at ada's worker\.", why(served, done)["ended"].sentence
    )
    served.fail(served.lease(), "[RETRYABLE] HTTP 503 Service Unavailable: token=hunter2")
    ended = why(served, dead)["ended"]
    (letter,) = served.all("select id from menzil.dlq")
    assert f"after 1 try: HTTP 503. It is dead letter {letter.id}." in ended.sentence
    assert ended.repair == f"menzil dlq redrive {letter.id}"
    assert ended.since == served.status(dead).ended_at
    again = served.call("redrive_message", letter.id)
    ended = why(served, dead)["ended"]
    assert f"redriven as message {again}" in ended.sentence
    assert ended.repair == f"menzil message why {again}"
    served.call("message_cancel", gone)
    assert "It was cancelled at" in why(served, gone)["ended"].sentence
    assert "before a consumer had leased it" in why(served, gone)["ended"].sentence
    pass_time(served.conn, 3_000_000_000)
    assert "It expired at" in why(served, late)["expired"].sentence
    served.call("mark_expired_messages")
    assert reasons(served, late) == ["ended"]
    assert why(served, late)["ended"].repair == f"menzil replay {late}"
    assert reasons(served, again) == ["next"]


def test_no_repair_is_told_that_would_be_refused(served: Queue) -> None:
    served.call("channel_set", "strict", p_on_dead="block")
    erased, behind = served.send("strict", ordering_key="k"), served.send("strict", ordering_key="k")
    served.fail(served.lease(), "[PERMANENT] no")
    served.call("message_erase", erased)
    ended = why(served, erased)["ended"]
    assert ended.sentence.endswith(" Its body was erased.")
    assert ended.repair is None
    row = why(served, behind)["key_blocked_by_dead_letter"]
    assert f"(message {erased}, erased)" in row.sentence
    assert (row.blocked_by, row.repair) == (str(erased), f"menzil message cancel {erased}")
    served.call("message_cancel", erased)
    served.fail(served.lease(), "[PERMANENT] no")
    served.call("channel_release", "strict")
    served.call("maintain")
    ended = why(served, behind)["ended"]
    assert ended.sentence.endswith(" Its channel 'strict' is gone.")
    assert ended.repair is None


def test_a_message_in_flight_names_its_worker_and_the_end_of_its_lease(served: Queue) -> None:
    sent = served.send()
    served.dequeue(1, worker="w")
    row = why(served, sent)["in_flight"]
    assert reasons(served, sent) == ["in_flight"]
    assert (row.blocked_by, row.until) == ("w", served.status(sent).unlock_at)
    assert row.sentence.startswith("Worker 'w' has it in try 1, until ")
    assert row.repair is None
    served.conn.execute("update menzil.worker set heartbeat_at = heartbeat_at - interval '1 hour'")
    assert "That worker was last heard of at" in why(served, sent)["in_flight"].sentence
    served.call("worker_stop", "w")
    assert "That worker has stopped: the message is taken back" in why(served, sent)["in_flight"].sentence


def test_a_lease_that_ran_out_says_so_until_a_dequeue_takes_it_back(served: Queue) -> None:
    sent = served.send()
    served.dequeue(1, lock_ms=1000)
    pass_time(served.conn, 20)
    row = why(served, sent)["in_flight"]
    assert row.sentence.startswith("The lease of a consumer without a name ran out at ")
    assert row.repair == "menzil worker", "nothing dequeues"
    assert ids(served.dequeue(1)) == [sent]
    assert "has it in try 2" in why(served, sent)["in_flight"].sentence


def test_a_schedule_says_when_until_it_is_due(served: Queue, sentence_zone: None) -> None:
    at = served.one("select date_trunc('second', clock_timestamp() + interval '1 hour')")
    sent = served.send(scheduled_at=at)
    row = why(served, sent)["scheduled"]
    assert reasons(served, sent) == ["scheduled"]
    assert (row.until, row.repair) == (at, f"menzil message retry-now {sent}")
    assert row.sentence == f"It is scheduled for {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC."
    assert row.since == served.status(sent).created_at
    pass_time(served.conn, 3700)
    assert reasons(served, sent) == ["next"], "due, though no dequeue has promoted it"
    served.call("maintain")
    assert reasons(served, sent) == ["next"]


def test_a_hurried_schedule_is_no_reason_any_more(served: Queue) -> None:
    sent = served.send(scheduled_at="2099-01-01+00")
    assert reasons(served, sent) == ["scheduled"]
    assert served.call("message_retry_now", sent)
    assert reasons(served, sent) == ["next"]


def test_a_retry_says_which_of_how_many_and_the_cause(served: Queue) -> None:
    served.call("set_retry_policy", "work", {"max_retries": 7, "base_delay_seconds": 60, "backoff": "fixed"})
    sent = served.send(payload={"secret": "hunter2"})
    served.fail(served.lease(), "[RETRYABLE] HTTP 503 Service Unavailable: hunter2 is out")
    row = why(served, sent)["retrying"]
    assert reasons(served, sent) == ["retrying"]
    assert re.fullmatch(r'Retry 1 of 7 is due at [0-9: -]+ UTC after "HTTP 503"\.', row.sentence)
    assert row.until == served.status(sent).next_retry_at
    assert row.until - row.since == timedelta(seconds=60)
    assert row.repair == f"menzil message retry-now {sent}"
    pass_time(served.conn, 61)
    assert reasons(served, sent) == ["next"]
    served.fail(served.lease(), "[RETRYABLE] shop.errors.NoStock: none of hunter2")
    assert "Retry 2 of 7 is due at" in why(served, sent)["retrying"].sentence
    assert 'after "shop.errors.NoStock".' in why(served, sent)["retrying"].sentence
    pass_time(served.conn, 61)
    served.fail(served.lease(), "the customer hunter2 was not found")
    assert re.search(r"is due at [0-9: -]+ UTC\.$", why(served, sent)["retrying"].sentence)


def test_a_deferred_message_says_that_its_consumer_chose_the_time(served: Queue) -> None:
    sent = served.send()
    served.defer(served.lease(), served.one("select clock_timestamp() + interval '1 hour'"))
    assert why(served, sent)["scheduled"].sentence.startswith("Its consumer deferred it to ")
    pass_time(served.conn, 3700)
    assert reasons(served, sent) == ["next"]


def test_a_message_behind_its_ordering_key_names_the_one_before_it(served: Queue) -> None:
    first, second, third = (served.send(ordering_key="k") for _ in range(3))
    row = why(served, third)["behind_key"]
    assert row.blocked_by == str(first)
    assert row.sentence == f"Message {first} of its ordering key goes first. 1 of the key is before it too."
    assert reasons(served, first) == ["next"]
    (leased,) = served.dequeue(1, worker="w")
    row = why(served, second)["behind_key"]
    assert row.sentence.startswith(f"Message {first} of its ordering key is in flight at w until ")
    assert (row.blocked_by, row.until) == (str(first), leased.unlock_at)
    served.fail(leased, "[RETRYABLE] HTTP 500", "1 hour")
    row = why(served, second)["behind_key"]
    assert row.sentence.startswith(f"Message {first} of its ordering key is tried again at ")
    assert 'after "HTTP 500".' in row.sentence
    assert row.until == served.status(first).next_retry_at
    assert row.repair == f"menzil message retry-now {first}"
    served.call("message_retry_now", first)
    served.complete(served.lease())
    assert reasons(served, second) == ["next"], "the next of its key, though no dequeue has raised it"
    assert served.lease().id == second


def test_a_scheduled_message_that_is_due_waits_behind_its_ordering_key(served: Queue) -> None:
    first = served.send(ordering_key="k")
    served.lease()
    second = served.send(ordering_key="k", scheduled_at=served.one("select clock_timestamp() + interval '10 s'"))
    assert reasons(served, second) == ["scheduled"]
    pass_time(served.conn, 11)
    assert why(served, second)["behind_key"].blocked_by == str(first)


def test_a_dead_letter_that_blocks_its_key_is_named_until_it_is_redriven_or_cancelled(served: Queue) -> None:
    served.call("channel_set", "strict", p_on_dead="block")
    dead, behind = served.send("strict", ordering_key="k"), served.send("strict", ordering_key="k")
    served.fail(served.lease(), "[PERMANENT] no")
    (letter,) = served.all("select id, failed_at from menzil.dlq")
    row = why(served, behind)["key_blocked_by_dead_letter"]
    assert reasons(served, behind) == ["key_blocked_by_dead_letter", "next"]
    assert row.sentence.startswith(f"Dead letter {letter.id} (message {dead}) blocks its ordering key since ")
    assert (row.blocked_by, row.since, row.repair) == (str(dead), letter.failed_at, f"menzil dlq redrive {letter.id}")
    assert why(served, behind)["next"].sentence == "Then its turn is next."
    again = served.call("redrive_message", letter.id)
    assert why(served, behind)["behind_key"].blocked_by == str(again)
    served.fail(served.lease(), "[PERMANENT] no")
    assert "key_blocked_by_dead_letter" in reasons(served, behind)
    served.call("message_cancel", again)
    assert reasons(served, behind) == ["next"]


def test_messages_before_it_are_counted_in_its_channel_and_of_higher_priority_elsewhere(served: Queue) -> None:
    served.call("channel_set", "other")
    served.send_batch("work", 5)
    sent = served.send()
    assert why(served, sent)["waiting_turn"].sentence == "5 messages are before it in its channel."
    served.call("maintain")
    assert why(served, sent)["waiting_turn"].sentence == "5 messages are before it in its channel."
    served.send(priority=9)
    served.call("send_batch_with_priority", "other", [psycopg.types.json.Jsonb(1)] * 3, 7)
    for _ in range(2):
        assert why(served, sent)["waiting_turn"].sentence == (
            "6 messages are before it in its channel, 3 of a higher priority in other channels."
        )
        served.call("maintain")
    served.complete(*served.dequeue(8))
    assert why(served, sent)["waiting_turn"].sentence == "1 message is before it in its channel."
    served.complete(*served.dequeue(1))
    assert reasons(served, sent) == ["next"]


def test_channels_of_the_same_priority_that_have_their_turn_before_are_counted(served: Queue) -> None:
    served.call("channel_set", "other")
    served.send("other")
    served.call("maintain")
    sent = served.send()
    served.call("maintain")
    assert why(served, sent)["waiting_turn"].sentence == "1 channel of its priority has its turn before it."
    served.call("channel_pause", "other")
    assert reasons(served, sent) == ["next"], "a channel that is paused has no turn"
    served.call("channel_resume", "other")
    served.lease(["other"])
    assert reasons(served, sent) == ["next"]


def test_a_message_in_the_middle_of_a_used_run_counts_what_is_left(served: Queue) -> None:
    sent = served.send_batch("work", 50)
    served.complete(*served.dequeue(10))
    assert "29 messages are" in why(served, sent[39])["waiting_turn"].sentence
    assert reasons(served, sent[10]) == ["next"]
    late = served.send(scheduled_at=served.one("select clock_timestamp() - interval '1 hour'"))
    assert reasons(served, late) == ["next"]
    assert "30 messages are" in why(served, sent[39])["waiting_turn"].sentence
    served.call("maintain")
    assert "30 messages are" in why(served, sent[39])["waiting_turn"].sentence


def test_messages_that_were_cancelled_before_it_do_not_count(served: Queue) -> None:
    sent = served.send_batch("work", 10)
    served.call("maintain")
    for message in sent[2:6]:
        served.call("message_cancel", message)
    assert "5 messages are" in why(served, sent[-1])["waiting_turn"].sentence


def test_more_than_ten_thousand_before_it_are_not_counted_further(served: Queue) -> None:
    served.send_batch("work", 12_000)
    sent = served.send()
    assert why(served, sent)["waiting_turn"].sentence == "More than 10000 messages are before it in its channel."
    served.call("channel_pause", "work")
    assert why(served, sent)["waiting_turn"].sentence.startswith("Then more than 10000 messages are before it")


def test_a_message_that_expires_before_its_time_comes_says_so(served: Queue) -> None:
    soon, later = (served.one("select clock_timestamp() + %s * interval '1 min'", n) for n in (1, 10))
    sent = served.send(expires_at=later)
    assert reasons(served, sent) == ["next"]
    served.call("channel_pause", "work")
    row = why(served, sent)["expires_first"]
    assert row.until == later
    assert row.sentence.endswith("UTC, unless it is leased before.")
    served.call("channel_resume", "work")
    assert reasons(served, sent) == ["next"]
    waits = served.send(expires_at=soon)
    served.fail(served.lease(), "no", "1 hour")
    served.fail(served.lease(), "no", "1 hour")
    assert reasons(served, waits) == ["retrying", "expires_first"]
    assert why(served, waits)["expires_first"].sentence.endswith("UTC, before that.")
    served.call("message_retry_now", waits)
    assert reasons(served, waits) == ["next"]


def test_a_copy_stands_still_until_it_is_adopted(served: Queue) -> None:
    sent = served.send()
    served.call("disown")
    try:
        row = why(served, sent)["copy"]
        assert "gives out no messages" in row.sentence
        assert row.rank == 1
        assert row.repair == "menzil adopt --yes"
    finally:
        served.call("adopt")
    assert "copy" not in reasons(served, sent)


def test_a_message_that_an_open_transaction_is_cancelling_is_held(served: Queue, connect: Connect) -> None:
    sent, other = served.send(), served.send()
    operator = Queue(connect(autocommit=False, application_name="ada"))
    operator.call("message_cancel", sent)
    row = until(lambda: why(served, sent).get("held"))
    pid = operator.conn.info.backend_pid
    assert row.sentence.startswith(f"An open transaction of process {pid} (ada) holds the message itself")
    assert row.repair == f"psql \"$MENZIL_DSN\" -c 'select pg_terminate_backend({pid})'"
    assert row.since is not None
    assert ids(served.dequeue(5)) == [other]
    assert "held" in reasons(served, sent), "a dequeue set it aside"
    operator.conn.rollback()
    until(lambda: "held" not in reasons(served, sent))
    assert ids(until(lambda: served.dequeue(5))) == [sent]


def test_a_lane_that_an_open_dequeue_holds_is_said(served: Queue, connect: Connect) -> None:
    first, sent = served.send(), served.send()
    consumer = Queue(connect(autocommit=False))
    for what in ("the gate of its channel", "the lane of its channel and priority"):  # the lane is born, then used
        assert consumer.lease().id == first
        row = until(lambda: why(served, sent).get("held"))
        assert f"holds {what}: a dequeue or a change of the channel" in row.sentence
        consumer.conn.rollback()
        assert "held" not in reasons(served, sent)
        served.call("maintain")


def test_a_message_without_a_place_is_said_to_have_none(served: Queue) -> None:
    sent = served.send()
    served.conn.execute("delete from menzil.line")
    row = why(served, sent)["no_place"]
    assert row.repair == "psql \"$MENZIL_DSN\" -c 'select menzil.rebuild()'"
    served.call("rebuild")
    assert reasons(served, sent) == ["next"]


def test_null_is_refused(served: Queue) -> None:
    with pytest.raises(psycopg.errors.NullValueNotAllowed):
        served.rows("message_why", None)


@pytest.mark.parametrize("seed", range(4))
def test_in_every_state_of_the_queue_the_reasons_are_those_of_the_status(queue: Queue, seed: int) -> None:
    """Random histories: an answer for every message, the right kind of answer, and never without a place."""
    play = Play(queue, seed)
    seen: set[str] = set()
    for step in range(120):
        play.step()
        if step % 10 != 9:
            continue
        for message in play.sent:
            said, status = why(queue, message), queue.status(message)
            seen |= said.keys()
            assert "no_place" not in said
            assert ("ended" in said) == (status.ended_at is not None)
            assert ("in_flight" in said) == (status.status == "processing")
            assert len(said) == 1 or not said.keys() & {"ended", "in_flight", "unknown"}
            if status.status == "pending":
                assert said.keys() & {"next", "waiting_turn", "scheduled", "retrying", "expired"}, said.keys()
            timed = said.get("scheduled") or said.get("retrying")
            if timed and status.next_retry_at:
                assert timed.until == status.next_retry_at
    assert len(seen) > 6
