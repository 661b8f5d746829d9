"""The cause of a death is written down when it happens, and finds the letters again."""

from __future__ import annotations

import re

import psycopg
import pytest

from tests.sql.dying import die, letter
from tests.sql.queue import Queue

ERRORS = {
    "[PERMANENT] HTTP 409 Conflict: order 7 was taken": ("HTTP 409 Conflict: order # was taken", "PERMANENT"),
    "[PERMANENT] [DISABLE] HTTP 410 Gone": ("HTTP 410 Gone", "DISABLE"),
    "[DISABLE] HTTP 410 Gone": ("HTTP 410 Gone", "DISABLE"),
}


def forget(queue: Queue) -> None:
    """As letters are that died before their cause was kept."""
    queue.conn.execute("update menzil.dead_letter set cause = null, error_class = null, cause_hash = null")


@pytest.mark.parametrize(("error", "told"), ERRORS.items())
def test_a_letter_keeps_its_cause_from_its_death_on(queue: Queue, error: str, told: tuple[str, str]) -> None:
    dead = letter(queue, die(queue, error=error))
    (row,) = queue.rows("dlq_causes")
    assert (dead.cause, row.error_class) == told
    assert (row.cause, row.cause_hash, row.sample_dlq_id) == (dead.cause, dead.cause_hash, dead.id)
    assert re.fullmatch("[0-9a-f]{12}", dead.cause_hash)


def test_a_letter_whose_retries_are_used_up_has_the_cause_of_its_last_try(queue: Queue) -> None:
    queue.call("set_setting", "default_max_retries", "0")
    sent = queue.send()
    assert queue.fail(queue.lease(), "It broke after 3 s") == "dead"
    assert letter(queue, sent).cause == "It broke after # s"
    assert queue.rows("dlq_causes")[0].error_class == "RETRYABLE"


def test_a_lease_that_ran_out_for_the_last_time_has_a_cause(queue: Queue) -> None:
    queue.call("set_setting", "default_max_retries", "0")
    sent = queue.send()
    queue.dequeue(lock_ms=1)
    queue.conn.execute("select pg_sleep(0.002)")
    queue.call("recover_stale_messages")
    assert letter(queue, sent).cause == "The lease expired before the message was settled."


def test_one_cause_has_another_name_in_another_class(queue: Queue) -> None:
    die(queue, error="[PERMANENT] no")
    die(queue, error="[PERMANENT] [DISABLE] no")
    one, other = queue.rows("dlq_causes")
    assert one.cause == other.cause == "no"
    assert one.cause_hash != other.cause_hash


def test_messages_that_die_together_have_each_their_own_cause(queue: Queue) -> None:
    sent = queue.send_batch("work", 5)
    leased = queue.dequeue(5)
    errors = ["[PERMANENT] one", "[PERMANENT] two", "[PERMANENT] one", "[PERMANENT] 3", "[PERMANENT]"]
    queue.rows("message_fail", [m.id for m in leased], [m.num_attempts for m in leased], errors)
    assert [letter(queue, id).cause for id in sent] == ["one", "two", "one", "#", ""]
    assert [letter(queue, id).last_error for id in sent] == errors


def test_older_letters_are_told_apart_before_and_after_the_job_comes_to_them(queue: Queue) -> None:
    for error in ("one", "two 1", "two 2", "[DISABLE] two 3"):
        die(queue, error=f"[PERMANENT] {error}")
    before = queue.rows("dlq_causes")
    letters = queue.all("select id, cause, cause_hash from menzil.dlq order by id")
    forget(queue)
    assert queue.rows("dlq_causes") == before
    queue.conn.execute("select menzil._explain_letters(3)")
    assert queue.rows("dlq_causes") == before
    assert queue.one("select count(*) from menzil.dlq where cause_hash is null") == 1
    assert queue.call("job_run", "causes") == 1
    assert queue.all("select id, cause, cause_hash from menzil.dlq order by id") == letters
    assert queue.rows("dlq_causes") == before
    assert queue.call("job_run", "causes") == 0


def test_the_job_leaves_a_letter_that_somebody_redrives(queue: Queue, connect) -> None:
    held, free = letter(queue, die(queue)).id, letter(queue, die(queue)).id
    forget(queue)
    other = connect(autocommit=False)
    other.execute("select menzil.redrive_message(%s)", [held])
    queue.conn.execute("set lock_timeout = '20s'")
    assert queue.call("job_run", "causes") == 1
    assert queue.one("select id from menzil.dlq where cause_hash is not null") == free
    other.commit()
    assert queue.call("job_run", "causes") == 1


@pytest.mark.parametrize("known", [True, False])
def test_a_cause_is_redriven_by_its_words_and_by_its_name(queue: Queue, known: bool) -> None:
    for error in ("[PERMANENT] a 1", "[PERMANENT] b", "[PERMANENT] a 2", "[DISABLE] a 3", "[PERMANENT] a 4"):
        die(queue, error=error)
    names = {(row.error_class, row.cause): row.cause_hash for row in queue.rows("dlq_causes")}
    if not known:
        forget(queue)
    assert queue.call("redrive_endpoint", "work", names["PERMANENT", "a #"], 2) == 2
    assert queue.all("select id from menzil.dlq where status = 'redriven' order by id") == [(1,), (3,)], "oldest first"
    assert queue.call("redrive_endpoint", "work", names["PERMANENT", "a #"]) == 1
    assert queue.call("redrive_endpoint", "work", "a #") == 1, "a cause in its words has every class"
    assert queue.call("redrive_endpoint", "work", "000000000000") == 0
    assert queue.one("select cause from menzil.dlq where status = 'failed'") == ("b" if known else None)


@pytest.mark.parametrize("known", [0, 2, 4])
def test_two_who_redrive_one_cause_take_different_letters(queue: Queue, connect, known: int) -> None:
    for _ in range(4):
        die(queue)
    forget(queue)
    assert queue.one("select menzil._explain_letters(%s)", known) == known
    (row,) = queue.rows("dlq_causes")
    first = Queue(connect(autocommit=False))
    assert first.call("redrive_endpoint", "work", row.cause_hash, 2) == 2
    queue.conn.execute("set lock_timeout = '20s'")
    assert queue.call("redrive_endpoint", "work", row.cause_hash, 2) == 2
    first.conn.commit()
    assert queue.one("select count(distinct redriven_id) from menzil.dlq") == 4


def test_an_erased_letter_does_not_keep_its_cause(queue: Queue) -> None:
    sent = die(queue, error="[PERMANENT] Ada Lovelace has no account")
    assert queue.call("message_erase", sent)
    assert letter(queue, sent).cause == ""
    assert [row.cause for row in queue.rows("dlq_causes")] == [""]
    assert queue.call("job_run", "causes") == 0


def test_counting_causes_reads_no_letter_but_one_of_each(queue: Queue) -> None:
    queue.conn.execute(
        """insert into menzil.dead_letter (original_message_id, channel_id, created_at, failed_at, num_attempts,
               last_error, cause, error_class, cause_hash)
             select n, (select id from menzil.channel), now(), now(), 1, repeat('x', 500) || n, 'x' || n % 3,
                    'RETRYABLE', menzil._cause_hash('RETRYABLE', 'x' || n % 3) from generate_series(1, 20000) n"""
    )
    queue.conn.execute("vacuum analyze menzil.dead_letter")
    queue.rows("dlq_causes")
    (plan,) = queue.one("explain (analyze, buffers, format json) select * from menzil.dlq_causes()")
    read = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
    assert read < queue.one("select relpages from pg_class where oid = 'menzil.dead_letter'::regclass") / 3
    assert sorted(row.failed_count for row in queue.rows("dlq_causes")) == [6666, 6667, 6667]


def test_a_monitor_may_count_causes(queue: Queue, connect) -> None:
    die(queue)
    monitor = connect()
    monitor.execute("set role menzil_monitor")
    assert monitor.execute("select failed_count from menzil.dlq_causes()").fetchall() == [(1,)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        monitor.execute("select * from menzil.dlq")


def test_deaths_are_counted_by_cause_and_step(queue: Queue) -> None:
    die(queue, error="[PERMANENT] HTTP 422 no")
    die(queue, error="[PERMANENT] HTTP 410 gone")
    early = die(queue, error="[PERMANENT] HTTP 410 gone")
    queue.conn.execute(
        "update menzil.dead_letter set failed_at = failed_at - interval '90 min' where original_message_id = %s",
        (early,),
    )
    start = queue.one("select clock_timestamp() - interval '2 h'")
    rows = queue.rows("dlq_deaths", start, "1 h")
    causes = {row.cause_hash: row.cause for row in queue.rows("dlq_causes")}
    assert sorted((causes[row.cause_hash], row.at == start, row.letters) for row in rows) == [
        ("HTTP 410 gone", False, 1), ("HTTP 410 gone", True, 1), ("HTTP 422 no", False, 1)
    ]  # fmt: skip
    assert sum(row.letters for row in queue.rows("dlq_deaths", start, "1 h", 2)) == 2, "the newest ones"
    assert sum(row.letters for row in queue.rows("dlq_deaths", "-infinity", "1 h")) == 3, "all there ever were"
