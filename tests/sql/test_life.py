"""menzil.message_life and menzil.message_family: one message from its sender to its last retelling."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.clock import created_at, pass_time
from tests.sql.queue import Queue
from tests.sql.staging import bulk, row


def life(queue: Queue, message: int) -> list[Any]:
    rows = queue.rows("message_life", message)
    times = [row.at for row in rows]
    assert times == sorted(times)
    assert all(row.sentence.endswith(".") for row in rows)
    return rows


def story(queue: Queue, message: int) -> list[tuple[str, int]]:
    return [(row.what, row.message_id) for row in life(queue, message)]


def family(queue: Queue, message: int) -> dict[int, Any]:
    return {row.message_id: row for row in queue.rows("message_family", message)}


def die(queue: Queue, error: str = "[PERMANENT] HTTP 410 Gone") -> int:
    """Let the next message fail for good; returns the id of its dead letter."""
    message = queue.lease()
    queue.fail(message, error)
    return queue.one("select id from menzil.dlq where original_message_id = %s", message.id)


def test_a_message_that_completed_at_once(queue: Queue) -> None:
    sent = queue.send(priority=3)
    queue.complete(*queue.dequeue(1, worker="w"))
    first, tried, end = life(queue, sent)
    assert (first.what, first.sentence, first.detail["priority"]) == ("sent", "Sent to 'work' with priority 3.", 3)
    assert (tried.what, tried.attempt, tried.worker, tried.sentence) == (
        "try_completed", 1, "w", "Try 1 completed at w.",
    )  # fmt: skip
    assert (end.what, end.at) == ("completed", queue.status(sent).ended_at)
    assert end.duration_ms == pytest.approx((end.at - first.at).total_seconds() * 1000)
    assert tried.duration_ms == pytest.approx((end.at - tried.at).total_seconds() * 1000)


def test_every_try_is_told_and_no_word_of_the_payload(queue: Queue) -> None:
    sent = queue.send(payload={"card": "hunter2"}, headers={"X-Token": "hunter2"}, metadata={"m": "hunter2"})
    queue.fail(queue.lease(), "[RETRYABLE] HTTP 503 Service Unavailable: hunter2", "0 s")
    queue.dequeue(1, lock_ms=1000)
    pass_time(queue.conn, 2)
    queue.defer(queue.lease(), state=b"hunter2")
    message = queue.lease()
    queue.rows(
        "message_fail", [sent], [message.num_attempts], ["KeyError: 'hunter2'"], None,
        [psycopg.types.json.Jsonb({"status": 500, "duration_ms": 12.5, "body": "hunter2"})],
    )  # fmt: skip
    rows = life(queue, sent)
    tries = [row for row in rows if row.what.startswith("try_")]
    assert [(row.what, row.attempt) for row in sorted(tries, key=lambda row: row.attempt)] == [
        ("try_failed", 1), ("try_recovered", 2), ("try_deferred", 3), ("try_failed", 4),
    ]  # fmt: skip
    last = max(tries, key=lambda row: row.attempt)
    assert (last.duration_ms, last.detail["status_code"], last.detail["cause"]) == (12.5, 500, "KeyError")
    assert "due" in [row.what for row in rows], "its retry"
    assert "hunter2" not in str(rows)
    assert "hunter2" not in str(queue.rows("message_why", sent))
    assert "hunter2" not in str(queue.rows("message_family", sent))


def test_a_message_in_flight_and_what_it_waits_for(queue: Queue) -> None:
    sent = queue.send(expires_at="2099-01-01+00")
    assert [row.what for row in life(queue, sent)] == ["sent", "expires"]
    queue.dequeue(1, worker="w")
    flying = next(row for row in life(queue, sent) if row.what == "in_flight")
    assert (flying.worker, flying.attempt) == ("w", 1)
    later = queue.send(scheduled_at="2099-01-01+00")
    assert [row.what for row in life(queue, later)] == ["sent", "due"]


def test_redrives_and_replays_are_one_story_from_every_side(queue: Queue) -> None:
    first = queue.send()
    second = queue.call("redrive_message", die(queue))
    third = queue.call("redrive_message", die(queue))
    queue.complete(queue.lease())
    fourth, fifth = queue.call("replay_message", third), queue.call("replay_message", third)
    seen = family(queue, third)
    assert {number: (one.depth, one.relation, one.parent_id) for number, one in seen.items()} == {
        third: (0, "self", second),
        second: (-1, "redrive", first),
        first: (-2, "redrive", None),
        fourth: (1, "replay", third),
        fifth: (1, "replay", third),
    }
    assert [seen[number].status for number in (first, second, third, fourth)] == [
        "failed", "failed", "completed", "pending",
    ]  # fmt: skip
    assert {number: one.depth for number, one in family(queue, first).items()} == {
        first: 0, second: 1, third: 2, fourth: 3, fifth: 3,
    }  # fmt: skip
    told = story(queue, third)
    assert [one for one in told if one[0] == "sent"] == [
        ("sent", number) for number in (first, second, third, fourth, fifth)
    ]
    assert ("dead_letter", first) in told
    assert ("try_failed", second) in told
    assert ("completed", third) in told
    assert told.count(("replayed", third)) == 2
    assert ("redriven", first) in story(queue, first)
    replayed = next(row for row in life(queue, third) if row.message_id == fifth)
    assert replayed.sentence == f"Sent to 'work' as a replay of message {third}."


def test_at_most_fifty_descendants_and_twenty_steps(queue: Queue) -> None:
    first = last = queue.send()
    queue.complete(queue.lease())
    for _ in range(25):
        last = queue.call("replay_message", last)
        queue.complete(queue.lease())
    assert sorted(one.depth for one in family(queue, first).values()) == list(range(21))
    assert sorted(one.depth for one in family(queue, last).values()) == list(range(-20, 1))
    for _ in range(60):
        queue.call("replay_message", last)
    assert sorted(one.depth for one in family(queue, last).values() if one.depth > 0) == [1] * 50
    assert len(family(queue, first)) <= 51


def test_an_ancestor_that_was_cleaned_up_is_named_without_a_channel(queue: Queue) -> None:
    old = queue.send()
    queue.complete(queue.lease())
    new = queue.call("replay_message", old)
    created_at(queue.conn, old, "2019-05-05")
    queue.call("cleanup_old_archive_partitions")
    gone = family(queue, new)[old]
    assert (gone.depth, gone.channel, gone.status, gone.created_at) == (-1, None, None, None)
    assert [row.message_id for row in life(queue, new)] == [new]


def test_redrives_from_before_are_found_before_the_job_lookups_has_come_to_them(queue: Queue) -> None:
    first = queue.send()
    second = queue.call("redrive_message", die(queue))
    queue.conn.execute("delete from menzil.lineage")
    assert list(family(queue, first)) == [first]
    queue.conn.execute("update menzil.lookup_state set told_from = %s", (second,))
    assert list(family(queue, first)) == [first, second]


def test_acts_on_the_message_and_on_its_channel_are_part_of_its_life(queue: Queue) -> None:
    queue.call("channel_pause", "work")
    queue.call("channel_resume", "work")
    sent = queue.send(scheduled_at="2099-01-01+00")
    queue.call("channel_pause", "work")
    queue.call("message_retry_now", sent)
    queue.call("channel_resume", "work")
    queue.complete(queue.lease())
    queue.call("message_erase", sent)
    queue.call("channel_set", "work", 3)
    assert [row.what for row in life(queue, sent)] == [
        "sent", "channel.paused", "hurried", "channel.resumed", "try_completed", "completed", "erased",
    ]  # fmt: skip
    paused = life(queue, sent)[1]
    assert paused.sentence.startswith("Channel paused")
    assert paused.sentence.endswith(": 'work'.")


def test_a_change_of_two_words_is_told_without_the_spelling_of_its_event(queue: Queue) -> None:
    message = queue.send()
    queue.call("set_retry_policy", "work", Jsonb({"max_retries": 3}))
    assert any(row.sentence.startswith("Retry policy changed by ") for row in life(queue, message))


def test_the_schedule_that_sent_it_is_named(queue: Queue) -> None:
    queue.call("schedule_create", "nightly", "* * * * *", "UTC", "work", {})
    queue.conn.execute("update menzil.schedule set next_at = date_trunc('minute', now()) - interval '1 min'")
    queue.call("schedule_fire_due")
    (slot,) = queue.all("select slot_at, message_id from menzil.schedule_slot")
    sent = life(queue, slot.message_id)[0]
    assert sent.sentence.startswith("Sent to 'work' by schedule 'nightly', for ")
    assert sent.detail["schedule"] == "nightly"


def test_the_bulk_send_that_brought_it_is_named_and_others_of_that_moment_are_not_taken_for_it(queue: Queue) -> None:
    before = queue.send()
    bulk(queue, row(), row(), row())
    after = queue.send()
    (sent,) = queue.all("select send_id, first_id, last_id from menzil.bulk_sends")
    for message in range(sent.first_id, sent.last_id + 1):
        first = life(queue, message)[0]
        assert first.detail["send_id"] == sent.send_id
        assert f"by bulk send '{sent.send_id}'" in first.sentence
    for message in (before, after):
        assert "send_id" not in life(queue, message)[0].detail
    # A stranger's message may have an id between those of a bulk send.
    queue.conn.execute("update menzil.bulk_send set first_id = %s, last_id = %s", [sent.first_id, after + 1])
    assert "send_id" not in life(queue, after)[0].detail


@pytest.mark.parametrize("function", ["message_life", "message_family"])
def test_an_unknown_message_is_refused(queue: Queue, function: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedObject, match="There is no message 42"):
        queue.rows(function, 42)
    with pytest.raises(psycopg.errors.NullValueNotAllowed):
        queue.rows(function, None)


def test_a_redrive_that_was_taken_back_and_acts_of_the_console_are_told_in_words(queue: Queue) -> None:
    dead = queue.send()
    letter = die(queue)
    queue.call("redrive_message", letter)
    queue.call("redrive_take_back", letter)
    sent = queue.send()
    queue.call("note_act", "send", "message", str(sent))
    queue.call("note_act", "message-cancel", "message", str(sent))
    told = [row.sentence for row in life(queue, dead) if row.message_id == dead]
    assert any(sentence.startswith("Its redrive was taken back by ") for sentence in told)
    told = [row.sentence for row in life(queue, sent)]
    assert any(sentence.startswith("Sent in the console by ") for sentence in told)
    assert any(sentence.startswith("Cancelled in the console by ") for sentence in told)
    assert not any("Event " in sentence for sentence in told)
