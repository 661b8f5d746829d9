"""The list of dead letters: counted, grouped by cause, with the whole history of each, and cleaned up."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.dying import die, letter
from tests.sql.queue import Queue, ids


def age(queue: Queue, days: float, message: int | None = None) -> None:
    """Let dead letters be older by so many days."""
    queue.conn.execute(
        "update menzil.dead_letter set failed_at = failed_at - make_interval(secs => %s) "
        "where original_message_id = coalesce(%s, original_message_id)",
        [days * 86_400, message],
    )


# --- summary ----------------------------------------------------------------------------------------------------------


def test_the_summary_has_one_line_per_endpoint(queue: Queue) -> None:
    queue.call("channel_set", "alpha")
    dead = [die(queue), die(queue), die(queue), die(queue, "alpha")]
    age(queue, 3, dead[0])
    age(queue, 2, dead[1])
    queue.call("redrive_message", letter(queue, dead[0]).id)
    alpha, work = queue.rows("dlq_summary")
    assert (alpha.endpoint_name, alpha.failed_count, alpha.redriven_count) == ("alpha", 1, 0)
    assert (work.endpoint_name, work.failed_count, work.redriven_count) == ("work", 2, 1)
    assert work.oldest_failed_at == letter(queue, dead[1]).failed_at
    assert work.newest_failed_at == letter(queue, dead[2]).failed_at


def test_the_summary_of_an_empty_list_is_empty(queue: Queue) -> None:
    assert queue.rows("dlq_summary") == []


def test_the_summary_knows_what_died_in_a_channel_that_is_gone(queue: Queue) -> None:
    die(queue)
    queue.call("channel_release", "work")
    queue.call("channel_set", "work")
    die(queue)
    (row,) = queue.rows("dlq_summary")
    assert (row.endpoint_name, row.failed_count) == ("work", 2)


# --- causes -----------------------------------------------------------------------------------------------------------

SAME = [
    ("[RETRYABLE] Order 42 is locked.", "Order 4711 is locked."),
    ("No user 8b1a9953-c461-11e9-aa8c-2a2ae2dbcce4", "No user 0B1A9953-C461-11E9-AA8C-2A2AE2DBCCE5"),
    ("No file 'a.txt' in \"here\"", 'No file \'b c.txt\' in "the \\"other\\" place"'),
    ("At 2026-01-02T03:04:05Z it broke", "At 2027-12-31 23:59:59.123456+01:00 it broke"),
    ("Object at 0x7f3faedad350 is gone", "Object at 0x55d0c0ffee00 is gone"),
    ("Commit 0a1b2c3d4e5f is bad", "Commit ffeeddcc00112233 is bad"),
    ("Took 1.5 s", "Took 12 s"),
    ("HTTP 503 Service Unavailable: request 17", "HTTP 503 Service Unavailable: request 18"),
    ('HTTP 500 Internal Server Error: {"id": 1}', 'HTTP 500 Internal Server Error: {"id": 222}'),
]
DIFFERENT = [
    ("HTTP 503 Service Unavailable", "HTTP 502 Bad Gateway"),
    ("HTTP 500: no", "HTTP 501: no"),
    ("It isn't there, it's gone", "It isn't here, it's gone"),
    ("no", "yes"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_trouble_is_one_cause(queue: Queue, one: str, other: str) -> None:
    dead = [die(queue, error=f"[PERMANENT] {error}") for error in (one, other)]
    (row,) = queue.rows("dlq_causes")
    assert (row.endpoint_name, row.failed_count) == ("work", 2)
    assert row.oldest_failed_at == letter(queue, dead[0]).failed_at
    assert row.newest_failed_at == letter(queue, dead[1]).failed_at
    assert row.sample_dlq_id == letter(queue, dead[1]).id


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_troubles_are_different_causes(queue: Queue, one: str, other: str) -> None:
    for error in (one, other):
        die(queue, error=f"[PERMANENT] {error}")
    assert [row.failed_count for row in queue.rows("dlq_causes")] == [1, 1]


@pytest.mark.parametrize("error", [error for pair in (*SAME, *DIFFERENT) for error in pair])
@pytest.mark.parametrize("before", ["", "[PERMANENT] [DISABLE] HTTP 410 Gone: ", "words " * 10])
def test_the_outline_of_an_error_has_its_cause(queue: Queue, before: str, error: str) -> None:
    """Dead letters are counted by outline and redriven by cause: both must mean the same ones."""
    outline = queue.one("select menzil._error_outline(%s)", before + error)
    cause = "select menzil._outline_cause(menzil._error_outline(%s))"
    assert queue.one(cause, outline) == queue.one(cause, before + error)


def test_a_cause_reads_like_the_error(queue: Queue) -> None:
    error = "[PERMANENT]  HTTP 409 Conflict: order 42 of\n'Ada' was taken at 2026-01-02 03:04:05+00"
    die(queue, error=error)
    (row,) = queue.rows("dlq_causes")
    assert (row.error_class, row.cause) == ("PERMANENT", 'HTTP 409 Conflict: order # of "..." was taken at #')


def test_causes_are_told_apart_by_endpoint_and_class(queue: Queue) -> None:
    queue.call("set_setting", "default_max_retries", "0")
    queue.call("channel_set", "other")
    for channel in ("work", "other"):
        for mark in ("", "[RETRYABLE] ", "[PERMANENT] ", "[PERMANENT] [DISABLE] ", "[DISABLE] "):
            die(queue, channel, error=f"{mark}no")
    rows = {(row.endpoint_name, row.error_class): row.failed_count for row in queue.rows("dlq_causes")}
    assert rows == {
        (channel, kind): count
        for channel in ("work", "other")
        for kind, count in (("RETRYABLE", 2), ("PERMANENT", 1), ("DISABLE", 2))
    }
    assert {row.endpoint_name for row in queue.rows("dlq_causes", "other")} == {"other"}


def test_the_most_frequent_cause_comes_first_and_the_limit_cuts_the_rest(queue: Queue) -> None:
    for error in ("a", "b", "b", "c"):
        die(queue, error=f"[PERMANENT] {error}")
    assert [(row.cause, row.failed_count) for row in queue.rows("dlq_causes", None, 2)] == [("b", 2), ("c", 1)]


def test_what_was_redriven_is_no_trouble_any_more(queue: Queue) -> None:
    die(queue)
    queue.call("redrive_all")
    assert queue.rows("dlq_causes") == []


def test_an_endless_error_has_a_short_cause(queue: Queue) -> None:
    die(queue, error="[PERMANENT] " + "word " * 1500)
    (row,) = queue.rows("dlq_causes")
    assert len(row.cause) <= 200
    assert queue.call("redrive_endpoint", "work", row.cause) == 1


@pytest.mark.parametrize(
    ("state", "params"),
    [
        ("42704", ["nobody"]),
        ("42704", [""]),
        ("22004", ["work", None]),
        ("22023", [None, 0]),
        ("22023", [None, 10_001]),
    ],
)
def test_bad_questions_for_causes_are_refused(queue: Queue, state: str, params: list[object]) -> None:
    with pytest.raises(psycopg.Error) as refused:
        queue.rows("dlq_causes", *params)
    assert refused.value.sqlstate == state


# --- the whole history ------------------------------------------------------------------------------------------------


def test_a_dead_letter_tells_every_try(queue: Queue) -> None:
    queue.call("set_setting", "default_max_retries", "1")
    sent = queue.send()
    queue.defer(queue.lease())
    (second,) = queue.dequeue(worker="one")
    answer = {"status": 503, "duration_ms": 12, "body": "busy", "correlation_id": "c"}
    call = "menzil.message_fail(array[%s], array[%s::bigint], array[%s], array[interval '0'], array[%s])"
    assert (
        queue.one(f"select outcome from {call}", second.id, second.num_attempts, "[RETRYABLE] HTTP 503", Jsonb(answer))
        == "retry"
    )
    (third,) = queue.dequeue(worker="two")
    queue.fail(third, "[RETRYABLE] no answer")
    tries = letter(queue, sent).attempts
    assert [(each["attempt"], each["outcome"], each["worker"]) for each in tries] == [
        (1, "deferred", None),
        (2, "failed", "one"),
        (3, "failed", "two"),
    ]
    assert [each["error"] for each in tries] == [None, "[RETRYABLE] HTTP 503", "[RETRYABLE] no answer"]
    assert [each["status"] for each in tries] == [None, 503, None]
    assert (tries[1]["response"], tries[1]["duration_ms"]) == (answer, 12)
    assert tries[2]["leased_at"] < tries[2]["ended_at"]
    assert tries[2]["duration_ms"] > 0


def test_the_attempts_of_a_message_tell_what_was_answered_and_how_long_it_took(queue: Queue) -> None:
    sent = queue.send()
    queue.fail(queue.lease(), retry_after="0")
    message = queue.lease()
    queue.all(
        "select * from menzil.message_complete(array[%s], array[%s::bigint], array[%s])",
        *(message.id, message.num_attempts, Jsonb({"status": 200, "duration_ms": 7.5})),
    )
    first, last = queue.all("select * from menzil.attempts where message_id = %s order by attempt", sent)
    assert (first.outcome, first.response, first.status_code) == ("failed", None, None)
    took = first.ended_at - first.leased_at
    assert abs(timedelta(milliseconds=float(first.duration_ms)) - took) < timedelta(milliseconds=1)
    assert (last.outcome, last.status_code, float(last.duration_ms)) == ("completed", 200, 7.5)
    assert last.response == {"status": 200, "duration_ms": 7.5}


@pytest.mark.parametrize(
    "answer", [{"status": "x"}, {"status": 10**30}, {"status": -1}, {"duration_ms": "long"}, [1], "text", 5]
)
def test_an_odd_response_spoils_no_view(queue: Queue, answer: object) -> None:
    sent = queue.send()
    message = queue.lease()
    queue.all(
        "select * from menzil.message_fail(array[%s], array[%s::bigint], array['[PERMANENT]'], null, array[%s])",
        *(message.id, message.num_attempts, Jsonb(answer)),
    )
    row = queue.one("select * from menzil.attempts where message_id = %s", sent)
    assert (row.response, row.status_code) == (answer, None)
    assert row.duration_ms >= 0
    assert letter(queue, sent).attempts[0]["response"] == answer


def test_tries_are_looked_up_by_their_primary_key(queue: Queue) -> None:
    queue.conn.execute("set enable_seqscan = off")
    plan = "\n".join(row[0] for row in queue.all("explain select attempts from menzil.dlq where id = 5"))
    assert "Index Cond: (message_id = d.original_message_id)" in plan
    assert "Seq Scan" not in plan


# --- cleaning up ------------------------------------------------------------------------------------------------------


def test_old_dead_letters_are_cleaned_up_whatever_their_status(queue: Queue) -> None:
    old, redriven, young = die(queue), die(queue), die(queue)
    queue.call("redrive_message", letter(queue, redriven).id)
    age(queue, 30.1)
    age(queue, -0.2, young)
    assert queue.call("cleanup_dlq") == 2
    assert [row[0] for row in queue.all("select original_message_id from menzil.dlq")] == [young]
    assert queue.call("cleanup_dlq") == 0
    assert queue.archived(old).status == "failed"
    assert queue.one("select count(*) from menzil.attempts where message_id = %s", old) == 1


def test_the_setting_says_what_is_old(queue: Queue) -> None:
    die(queue)
    age(queue, 3)
    assert queue.call("cleanup_dlq") == 0
    queue.call("set_setting", "dlq_retention_days", "2")
    assert queue.call("cleanup_dlq") == 1


def test_the_oldest_dead_letters_go_first_and_no_more_than_asked(queue: Queue) -> None:
    dead = [die(queue) for _ in range(5)]
    for n, message in enumerate(dead):
        age(queue, 40 + n, message)
    assert queue.call("cleanup_dlq", 2) == 2
    left = queue.all("select original_message_id from menzil.dlq order by id")
    assert [row[0] for row in left] == dead[:3]


def test_a_dead_letter_that_is_cleaned_up_lets_its_key_go(queue: Queue) -> None:
    queue.call("channel_set", "work", p_on_dead="block")
    queue.send(ordering_key="k")
    behind = queue.send(ordering_key="k")
    queue.fail(queue.lease(), "[PERMANENT] no")
    age(queue, 31)
    assert queue.dequeue(5) == []
    assert queue.call("cleanup_dlq") == 1
    assert ids(queue.dequeue(5)) == [behind]


def test_a_redriven_one_that_is_cleaned_up_does_not_take_the_key_from_its_message(queue: Queue) -> None:
    queue.call("channel_set", "work", p_on_dead="block")
    dead = queue.send(ordering_key="k")
    queue.send(ordering_key="k")
    queue.fail(queue.lease(), "[PERMANENT] no")
    new = queue.call("redrive_message", letter(queue, dead).id)
    age(queue, 31)
    assert queue.call("cleanup_dlq") == 1
    assert ids(queue.dequeue(5)) == [new]


def test_a_dead_letter_that_somebody_redrives_is_not_cleaned_up(queue: Queue, connect) -> None:
    dead = die(queue)
    die(queue)
    age(queue, 31)
    slow = Queue(connect(autocommit=False))
    slow.call("redrive_message", letter(queue, dead).id)
    queue.conn.execute("set lock_timeout = '20s'")
    assert queue.call("cleanup_dlq") == 1
    slow.conn.commit()
    assert letter(queue, dead).status == "redriven"


@pytest.mark.parametrize("function", ["cleanup_dlq", "cleanup_attempts", "cleanup_event_log"])
@pytest.mark.parametrize(("limit", "state"), [(None, "22004"), (0, "22023"), (-1, "22023"), (1_000_001, "22023")])
def test_a_janitor_of_history_refuses_a_bad_limit(queue: Queue, function: str, limit: int | None, state: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        queue.call(function, limit)
    assert refused.value.sqlstate == state
