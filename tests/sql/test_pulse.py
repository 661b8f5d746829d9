"""The pulse counts every send, end and try once, whoever commits when, and however often its job dies."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.clock import created_at, pass_time, until
from tests.sql.pulsing import check, count, told
from tests.sql.queue import Queue


@pytest.fixture
def other(connect) -> Queue:
    """A session whose transactions stay open."""
    return Queue(connect(autocommit=False))


def test_what_was_sent_and_what_ended_is_counted_by_channel(queue: Queue) -> None:
    queue.call("channel_set", "mail")
    queue.call("channel_set", "quiet")
    queue.send_batch("work", 30)
    queue.send("mail", ordering_key="k")
    queue.send("mail", scheduled_at="2099-01-01")
    queue.call("message_cancel", queue.send("mail"))
    queue.send("mail", expires_at=queue.one("select now() + interval '10 s'"), priority=1)
    pass_time(queue.conn, 20)
    queue.call("mark_expired_messages")
    taken = queue.dequeue(20)
    queue.complete(*taken[:10])
    queue.fail(taken[10], "[PERMANENT] no")
    queue.fail(taken[11])
    queue.defer(taken[12])
    count(queue)
    check(queue)
    sums = dict(queue.all("select channel, sum(sent)::integer from menzil.pulse group by 1"))
    assert sums == {"work": 30, "mail": 4}
    (total,) = queue.all(
        """select sum(completed) as completed, sum(dead) as dead, sum(failed_tries) as failed,
             sum(deferred) as deferred, sum(expired) as expired, sum(cancelled) as cancelled from menzil.pulse_of()"""
    )
    assert total == (10, 1, 2, 1, 1, 1)


def test_a_second_round_counts_nothing_again(queue: Queue) -> None:
    queue.send_batch("work", 5)
    queue.complete(*queue.dequeue(3))
    for _ in range(3):
        count(queue)
        check(queue)


def test_a_send_that_commits_late_is_counted_when_it_commits(queue: Queue, other: Queue) -> None:
    other.send_batch("work", 5)
    queue.send_batch("work", 7)
    count(queue)
    assert [row[2] for row in told(queue)] == [7]
    count(queue)
    queue.send()
    other.conn.commit()
    count(queue)
    check(queue)
    assert sum(row[2] for row in told(queue)) == 13


def test_a_send_that_stays_open_after_a_round_without_a_mark_is_counted(
    queue: Queue, other: Queue, connect: Any
) -> None:
    """A round that meets a transaction without an id of its own has no mark for the next one."""
    queue.send_batch("work", 3)
    count(queue)
    looks = Queue(connect(autocommit=False))
    looks.one("select pg_sequence_last_value('menzil.message_id')")  # locks the sequence as a sender does
    count(queue)
    other.send_batch("work", 26)
    queue.send()
    count(queue)
    count(queue)
    other.conn.commit()
    looks.conn.rollback()
    count(queue)
    check(queue)
    assert sum(row[2] for row in told(queue)) == 30


def test_a_send_that_is_rolled_back_late_is_never_counted(queue: Queue, other: Queue, connect) -> None:
    third = Queue(connect(autocommit=False))
    other.send_batch("work", 5)
    queue.send()
    third.send_batch("work", 3)
    count(queue)
    other.conn.rollback()
    count(queue)
    queue.send_batch("work", 2)
    count(queue)
    third.conn.commit()
    for _ in range(3):
        count(queue)
    check(queue)
    assert queue.one("select gaps = '{}' from menzil.pulse_state"), "nothing is looked for any longer"


def test_gaps_of_rolled_back_sends_are_forgotten_while_another_send_stays_open(
    queue: Queue, other: Queue, connect
) -> None:
    third = Queue(connect(autocommit=False))
    for _ in range(4):
        third.send_batch("work", 3)
        third.conn.rollback()
        queue.send()
    third.send()
    third.conn.commit()
    other.send()
    queue.send()
    count(queue)
    count(queue)
    other.conn.commit()
    other.send()
    count(queue)
    count(queue)
    assert queue.one("select count(*) from menzil.pulse_state s, unnest(s.gaps)") <= 1
    other.conn.commit()
    count(queue)
    check(queue)


def test_an_end_that_commits_late_is_counted_when_it_commits(queue: Queue, other: Queue) -> None:
    queue.send_batch("work", 12)
    early, late = queue.dequeue(6), queue.dequeue(6)
    other.complete(*late[:3])
    other.fail(late[3])
    other.fail(late[4], "[PERMANENT] no")
    other.defer(late[5])
    queue.complete(*early[:4])
    queue.fail(early[4])
    count(queue)
    check(queue)
    queue.complete(early[5])
    count(queue)
    check(queue)
    other.conn.commit()
    count(queue)
    check(queue)


def test_an_end_that_is_rolled_back_is_never_counted(queue: Queue, other: Queue) -> None:
    queue.send_batch("work", 4)
    taken = queue.dequeue(4)
    other.complete(*taken)
    count(queue)
    other.conn.rollback()
    queue.complete(*taken[:2])
    count(queue)
    count(queue)
    check(queue)


def test_a_round_that_dies_counts_nothing_and_the_next_counts_all(queue: Queue, connect) -> None:
    queue.send_batch("work", 20)
    queue.complete(*queue.dequeue(10))
    dying = connect(autocommit=False)
    dying.execute("select menzil._pulse(100000)")
    assert dying.execute("select sum(sent) from menzil.pulse").fetchone() == (20,)
    dying.close()
    assert told(queue) == []
    until(lambda: count(queue) or told(queue))  # the server has yet to notice
    check(queue)


def test_a_round_beside_another_counts_nothing(queue: Queue, other: Queue) -> None:
    queue.send_batch("work", 20)
    other.one("select menzil._pulse(100000)")
    queue.conn.execute("set lock_timeout = '20s'")
    assert queue.one("select menzil._pulse(100000)") == 0
    other.conn.commit()
    count(queue)
    check(queue)


@pytest.mark.parametrize("fate", ["commit", "rollback"])
def test_a_round_inside_the_transaction_that_it_would_count(queue: Queue, other: Queue, fate: str) -> None:
    queue.send_batch("work", 6)
    taken = queue.dequeue(6)
    other.send_batch("work", 3)
    other.complete(*taken[:2])
    other.fail(taken[2])
    assert other.call("job_run", "pulse") is not None
    other.complete(*taken[3:5])
    other.send()
    assert other.call("job_run", "pulse") is not None
    getattr(other.conn, fate)()
    count(queue)
    check(queue)


def test_a_round_in_another_isolation_level_counts_nothing(queue: Queue, connect) -> None:
    strict = connect(autocommit=False)
    strict.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    strict.execute("select 1")
    queue.send()
    assert strict.execute("select menzil._pulse(1000)").fetchone() == (0,)
    strict.commit()
    count(queue)
    check(queue)


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_small_rounds_count_a_large_transaction_piece_by_piece(queue: Queue, other: Queue, limit: int) -> None:
    queue.call("channel_set", "mail")
    for n in range(10):
        queue.send_batch(("work", "mail")[n % 2], 13)
    late, early = queue.dequeue(60), queue.dequeue(60)
    for message, failing in zip(late[:20], late[20:40], strict=True):
        other.complete(message)
        other.fail(failing, retry_after="1 hour")
    queue.one(f"select menzil._pulse({limit})")
    other.complete(*late[40:])
    queue.complete(*early[:40])
    other.conn.commit()
    queue.one(f"select menzil._pulse({limit})")
    queue.fail(early[40], "[PERMANENT] no")
    count(queue, limit)
    check(queue)


def test_a_purge_of_many_is_counted_in_rounds_that_say_that_they_are_behind(queue: Queue) -> None:
    queue.send_batch("work", 5000)
    count(queue)
    assert queue.call("channel_purge", "work") == 5000
    assert queue.one("select menzil._pulse(1000)") >= 1000
    assert queue.one("select behind_since from menzil.pulse_state") is not None
    queue.conn.execute("update menzil.pulse_state set behind_since = behind_since - interval '2 min', writer = '{}'")
    queue.conn.execute("update menzil.pulse_state s set writer = array[pg_current_xact_id()::xid]")
    (said,) = [row for row in queue.rows("health_check") if row.check_name == "pulse"]
    assert (said.status, "behind since" in said.detail) == ("warning", True)
    count(queue, 1000)
    check(queue)
    (said,) = [row for row in queue.rows("health_check") if row.check_name == "pulse"]
    assert said.status == "ok"


def vacuum(queue: Queue) -> None:
    """Only giving pages back is left out, where another session has a lock: VACUUM would ask for 5 s in vain."""
    for table in ("done", "attempt", "pulse_minute", "pulse_state"):
        held = queue.one("select count(*) from pg_locks where relation = %s::regclass", f"menzil.{table}") > 0
        queue.conn.execute(f"vacuum (truncate {not held}) menzil.{table}")


@pytest.mark.parametrize("seed", range(6))
def test_any_mix_of_open_late_and_failing_transactions_is_counted_once(queue: Queue, connect, seed: int) -> None:
    random = Random(seed)
    channels = ["work", "mail", "narrow", "bills"]
    queue.call("channel_set", "mail")
    queue.call("channel_set", "narrow", 5)
    queue.call("channel_set", "bills", p_on_dead="block")
    actors = [Queue(connect(autocommit=False)) for _ in range(4)]
    held: list[list[Any]] = [[] for _ in actors]
    for _ in range(150):
        n = random.randrange(len(actors))
        actor, leases = actors[n], held[n]
        what = random.random()
        if what < 0.25:
            actor.send_batch(random.choice(channels), random.choice([1, 2, 20]))
        elif what < 0.35:
            names = random.choices(channels, k=5)
            actor.call("send_many", names, [Jsonb({})] * 5)
        elif what < 0.4:
            actor.send(random.choice(channels), ordering_key=random.choice("ab"))
        elif what < 0.55:
            # A dequeue is a transaction of its own.
            actor.conn.commit()
            leases += actor.dequeue(random.choice([1, 5, 30]))
            actor.conn.commit()
        elif what < 0.7 and leases:
            for message in leases[:10]:
                settle = random.random()
                if settle < 0.6:
                    actor.complete(message)
                elif settle < 0.75:
                    actor.fail(message, retry_after="0")
                elif settle < 0.9:
                    actor.fail(message, "[PERMANENT] no")
                else:
                    actor.defer(message)
            if random.random() < 0.3:
                actor.conn.rollback()
            del leases[:10]
        elif what < 0.8:
            getattr(actor.conn, random.choice(["commit", "commit", "rollback"]))()
        elif what < 0.85:
            waiting = [row.id for row in queue.all("select id from menzil.queue where status = 'pending' limit 5")]
            queue.conn.execute("set lock_timeout = '20ms'")
            for each in waiting:
                with suppress(psycopg.errors.LockNotAvailable):
                    queue.call("message_cancel", each)
        else:
            limit = random.choice([3, 50, 100_000])
            if random.random() < 0.2:
                dying = connect(autocommit=False)
                dying.execute(f"select menzil._pulse({limit})")
                dying.rollback()
            else:
                queue.one(f"select menzil._pulse({limit})")
            if random.random() < 0.1:
                vacuum(queue)
    for actor in actors:
        getattr(actor.conn, random.choice(["commit", "rollback"]))()
    count(queue, random.choice([11, 100_000]))
    check(queue)
    assert queue.one("select gaps = '{}' and cardinality((ends).late) = 0 from menzil.pulse_state")


def test_messages_that_do_not_stay_in_the_archive_are_counted_before_they_go(queue: Queue) -> None:
    queue.call("set_setting", "archive_completed", "off")
    count(queue)
    queue.send_batch("work", 40)
    queue.complete(*queue.dequeue(30))
    queue.conn.execute("update menzil.pulse_state set counted_at = clock_timestamp()")
    queue.conn.execute("update menzil.pulse_state s set writer = array[pg_current_xact_id()::xid]")
    assert queue.call("job_run", "completed") == 0, "they are not counted yet"
    count(queue)
    assert queue.call("job_run", "completed") == 30
    count(queue)
    assert [row[2:4] for row in told(queue)] == [(40, 30)]


def test_messages_go_without_being_counted_where_nothing_counts(queue: Queue) -> None:
    queue.call("set_setting", "archive_completed", "off")
    queue.send_batch("work", 10)
    queue.complete(*queue.dequeue(10))
    assert queue.call("job_run", "completed") == 10
    count(queue)
    assert told(queue) == []


def test_a_month_that_was_dropped_before_it_was_counted_leaves_nothing(queue: Queue) -> None:
    sent = queue.send()
    created_at(queue.conn, sent, "2020-03-04")
    queue.complete(queue.lease())
    queue.send()
    assert queue.call("cleanup_old_archive_partitions", 1) == 1
    count(queue)
    count(queue)
    check(queue)


@pytest.mark.parametrize("analyzed", [False, True])
def test_a_round_reads_what_is_new_and_not_what_is_there(queue: Queue, analyzed: bool) -> None:
    for _ in range(30):
        queue.send_batch("work", 1000)
        queue.complete(*queue.dequeue(500))
        queue.rows("message_fail", *failed(queue.dequeue(20)))
    count(queue)
    if analyzed:
        queue.conn.execute("analyze")
    for news, most in ((0, 600), (5, 900)):
        for _ in range(news):
            queue.send()
            queue.complete(queue.lease())
            queue.fail(queue.lease())
        queue.conn.execute("update menzil.pulse_state set gauged_at = date_trunc('minute', clock_timestamp())")
        queue.conn.execute("update menzil.pulse_state s set writer = array[pg_current_xact_id()::xid]")
        (plan,) = queue.one("explain (analyze, buffers, format json) select menzil._pulse(100000)")
        assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < most
    check(queue)


def failed(leased: list[Any]) -> list[Any]:
    return [[m.id for m in leased], [m.num_attempts for m in leased], ["[PERMANENT] no"] * len(leased)]


# --- restores ---------------------------------------------------------------------------------------------------------


def restored(queue: Queue) -> None:
    """As a restore leaves it: every row written anew, ends with ids of transactions that are not there yet."""
    with queue.conn.transaction():
        for table in ("done", "attempt"):
            column = "ended_xid" if table == "done" else "xid"
            queue.conn.execute(f"update menzil.{table} set {column} = ({column}::text::bigint + 300)::text::xid8")
        queue.conn.execute(
            """update menzil.pulse_state s set ends.counted_to = ((ends).counted_to::text::bigint + 300)::text::xid8,
                 tries.counted_to = ((tries).counted_to::text::bigint + 300)::text::xid8"""
        )


def test_a_restored_copy_counts_nothing_twice(queue: Queue) -> None:
    queue.send_batch("work", 20)
    taken = queue.dequeue(10)
    queue.complete(*taken[:8])
    queue.fail(taken[8])
    count(queue)
    before = told(queue)
    restored(queue)
    count(queue)
    assert told(queue) == before
    for _ in range(350):  # transactions of this server come to the ids of the other
        queue.conn.execute("select pg_current_xact_id()")
    count(queue)
    assert told(queue) == before
    queue.complete(taken[9])
    queue.send_batch("work", 5)
    count(queue)
    sent, completed = (sum(row[n] for row in told(queue)) for n in (2, 3))
    assert (sent, completed) == (25, 9)


def test_sends_that_a_copy_brought_along_uncounted_are_counted_there(queue: Queue) -> None:
    queue.send_batch("work", 20)
    restored(queue)
    queue.send_batch("work", 5)
    count(queue)
    assert sum(row[2] for row in told(queue)) == 25


# --- clocks -----------------------------------------------------------------------------------------------------------


def test_a_clock_that_was_set_back_makes_no_number_negative(queue: Queue) -> None:
    queue.send_batch("work", 4)
    # Created in the future: the clock was set back since.
    queue.conn.execute("update menzil.message set created_at = created_at + interval '3 hours'")
    queue.complete(*queue.dequeue(4))
    count(queue)
    check(queue)
    assert queue.one("select ended_ms[1] from menzil.pulse where completed > 0") == 4
    queue.conn.execute("update menzil.pulse_state set gauged_at = gauged_at + interval '3 hours', writer = '{}'")
    queue.conn.execute("update menzil.pulse_state s set writer = array[pg_current_xact_id()::xid]")
    count(queue)
    check(queue)
    assert queue.one("select min(waiting) >= 0 and min(oldest_s) >= 0 from menzil.pulse_of()")


# --- gauges -----------------------------------------------------------------------------------------------------------


def test_gauges_are_measured_once_in_a_minute(queue: Queue) -> None:
    queue.call("channel_set", "mail")
    queue.send_batch("work", 5)
    queue.dequeue(2)
    count(queue)
    queue.send_batch("work", 5)
    queue.send_batch("mail", 5)
    count(queue)
    rows = {row.channel: row for row in queue.all("select * from menzil.pulse")}
    measured = {(row.waiting, row.in_flight) for row in (rows["work"], rows["mail"])}
    # A minute may begin between two rounds.
    assert measured in ({(3, 2), (0, 0)}, {(8, 2), (5, 0)}) or len(queue.all("select from menzil.pulse")) > 2
    assert queue.one("select max(waiting) from menzil.pulse_of()") in (3, 13)
    assert rows["work"].oldest_s > 0


def test_a_queue_at_rest_has_gauges_of_zero_for_all_channels_together(queue: Queue) -> None:
    count(queue)
    assert queue.all("select * from menzil.pulse") == []
    (row,) = queue.rows("pulse_of")
    assert (row.channel, row.waiting, row.in_flight, row.oldest_s, row.sent) == (None, 0, 0, 0, 0)
    assert (row.ended_ms, row.try_ms) == (None, None)


# --- hours ------------------------------------------------------------------------------------------------------------


def test_old_minutes_become_hours_and_old_hours_go(queue: Queue) -> None:
    queue.send_batch("work", 7)
    queue.complete(*queue.dequeue(4))
    count(queue)
    before = queue.one("select sum(sent) as sent, sum(completed) as completed from menzil.pulse")
    queue.conn.execute("update menzil.pulse_minute set at = at - interval '50 hours'")
    assert queue.call("job_run", "pulse_hours") > 0
    assert queue.one("select count(*) from menzil.pulse_minute") == 0
    assert queue.one("select sum(sent) as sent, sum(completed) as completed from menzil.pulse") == before
    whole = "date_trunc('hour', at at time zone 'UTC') at time zone 'UTC'"
    assert queue.one(f"select bool_and(step = '1 h' and at = {whole}) from menzil.pulse")
    assert queue.one("select sum((select sum(n) from unnest(ended_ms) n)) from menzil.pulse") == 4
    # A minute that is counted late is added to its hour.
    queue.conn.execute(
        """insert into menzil.pulse_minute (channel_id, at, sent, ended_ms)
             select channel_id, at + interval '1 min', 2, '{1,0,0,0,0,0,0,0,0,0,0,1}' from menzil.pulse_hour"""
    )
    assert queue.call("job_run", "pulse_hours") > 0
    assert queue.one("select sum(sent) from menzil.pulse") == before[0] + 2
    assert queue.one("select sum((select sum(n) from unnest(ended_ms) n)) from menzil.pulse") == 6
    queue.conn.execute("update menzil.pulse_hour set at = at - interval '91 days'")
    assert queue.call("job_run", "pulse_hours") > 0
    assert queue.one("select count(*) from menzil.pulse_hour") == 0


# --- reading ----------------------------------------------------------------------------------------------------------


def filled(queue: Queue) -> None:
    queue.call("channel_set", "mail")
    queue.conn.execute(
        """insert into menzil.pulse_minute (channel_id, at, waiting, in_flight, oldest_s, sent, completed, ended_ms)
             select c.id, '2026-03-01 00:00Z'::timestamptz + n * interval '1 min', n, 1, n * 2, 10, 5,
                    '{1,1,1,1,1,0,0,0,0,0,0,0}'
               from (select id from menzil.channel union all select 0) c, generate_series(0, 119) n"""
    )


def test_steps_are_summed_and_begin_at_multiples(queue: Queue) -> None:
    filled(queue)
    rows = queue.rows("pulse_of", "work", "2026-03-01 00:00Z", "2026-03-01 02:00Z", "1 hour")
    assert [(row.at.hour, row.channel, row.sent, row.completed) for row in rows] == [
        (0, "work", 600, 300),
        (1, "work", 600, 300),
    ]
    assert (rows[1].waiting, rows[1].in_flight, rows[1].oldest_s) == (119, 1, 238)
    assert rows[0].ended_ms == [60] * 5 + [0] * 7
    rows = queue.rows("pulse_of", "work", "2026-03-01 00:10Z", "2026-03-01 00:12Z")
    assert [(row.at.minute, row.sent) for row in rows] == [(10, 10), (11, 10)]


def test_without_a_channel_the_pulse_is_that_of_all(queue: Queue) -> None:
    filled(queue)
    (row,) = queue.rows("pulse_of", None, "2026-03-01", "2026-03-02", "1 day")
    assert (row.channel, row.sent) == (None, 1200)


def test_a_channel_that_is_gone_has_its_pulse(queue: Queue) -> None:
    queue.send("work")
    queue.complete(queue.lease())
    count(queue)
    queue.call("channel_release", "work")
    queue.call("job_run", "releases")
    assert queue.one("select sum(sent) from menzil.pulse_of('work')") == 1


@pytest.mark.parametrize("step", ["59 s", "-1 h", "1 month", "1 year", None])
def test_a_step_that_is_none_is_refused(queue: Queue, step: str | None) -> None:
    with pytest.raises((psycopg.errors.InvalidParameterValue, psycopg.errors.NullValueNotAllowed)):
        queue.rows("pulse_of", None, None, None, step)


def test_a_channel_that_never_was_is_refused(queue: Queue) -> None:
    with pytest.raises(psycopg.errors.UndefinedObject, match="no channel or endpoint named 'wurk'"):
        queue.rows("pulse_of", "wurk")


# --- tallies ----------------------------------------------------------------------------------------------------------

COUNTS = [0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]


def tally(number: Any, counts: Any = None, channel: str = "work") -> Jsonb:
    return Jsonb({"number": number, "try_ms": {channel: COUNTS if counts is None else counts}})


def tried(queue: Queue) -> list[int] | None:
    count(queue)
    rows = queue.all("select try_ms from menzil.pulse where try_ms is not null")
    return [sum(numbers) for numbers in zip(*(row.try_ms for row in rows), strict=True)] if rows else None


def beat(queue: Queue, given: Any, worker: str = "w") -> bool:
    return queue.call("worker_heartbeat", worker, p_tally=given)


def test_tries_are_those_that_workers_measured(queue: Queue) -> None:
    queue.call("worker_hello", "w", "host", 1, "0.2.0")
    assert beat(queue, tally(1))
    assert beat(queue, tally(2))
    assert tried(queue) == [2 * n for n in COUNTS]
    assert tried(queue) == [2 * n for n in COUNTS]
    assert beat(queue, tally(3, channel="nowhere")), "a channel that is not there is left out"
    assert tried(queue) == [2 * n for n in COUNTS]


def test_a_tally_that_is_handed_over_again_counts_once(queue: Queue) -> None:
    queue.call("worker_hello", "w", "host", 1, "0.2.0")
    assert beat(queue, tally(1))
    assert beat(queue, tally(1))
    assert tried(queue) == COUNTS
    queue.call("worker_hello", "w", "host", 1, "0.2.0")  # it began anew, and so do its numbers
    assert beat(queue, tally(1))
    assert tried(queue) == [2 * n for n in COUNTS]


def test_a_worker_that_nobody_knows_hands_nothing_over(queue: Queue) -> None:
    assert beat(queue, tally(1)) is False
    assert tried(queue) is None


def test_an_older_worker_hands_nothing_over(queue: Queue) -> None:
    queue.call("worker_hello", "w", "host", 1, "0.2.0", None, 1, "i")
    assert queue.one("select menzil.worker_heartbeat('w', 1, 2, 3, false, 'i')") is True
    assert tried(queue) is None


@pytest.mark.parametrize(
    "given",
    [
        Jsonb(None), Jsonb([]), Jsonb({}), Jsonb({"number": 1}), Jsonb({"number": 1, "try_ms": []}), tally("x"),
        tally(10**30), tally(None), tally(1, []), tally(1, [1] * 13), tally(1, ["1"] * 12), tally(1, [-1] * 12),
        tally(1, [10**12] * 12), tally(1, "text"), tally(1, {"a": 1}),
    ],
)  # fmt: skip
def test_a_tally_that_is_none_is_refused(queue: Queue, given: Jsonb) -> None:
    queue.call("worker_hello", "w", "host", 1, "0.2.0")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        beat(queue, given)
    assert tried(queue) is None
