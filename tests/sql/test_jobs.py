"""Housekeeping is data: jobs are claimed by one worker each, run in transactions of their own, and say how it went."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.sql.clock import pass_time
from tests.sql.queue import Queue, ids

JOBS = "select name from menzil.jobs order by name"


def run(queue: Queue, job: str) -> int:
    count = queue.call("job_run", job)
    assert queue.one("select last_error from menzil.jobs where name = %s", job) is None
    return count


@pytest.fixture
def failing(queue: Queue) -> Iterator[str]:
    """A job that cannot be done."""
    queue.conn.execute("insert into menzil.job (name, call, every) values ('failing', '1 / 0', '1 s')")
    yield "failing"
    queue.conn.execute("delete from menzil.job where name = 'failing'")


# --- claiming ---------------------------------------------------------------------------------------------------------


def test_each_job_is_claimed_once_until_it_is_due_again(queue: Queue) -> None:
    jobs = [row.name for row in queue.all(JOBS)]
    claimed = [queue.call("job_claim", f"w{n}") for n in range(len(jobs) + 1)]
    assert sorted(claimed[:-1]) == jobs
    assert claimed[-1] is None
    assert queue.one("select count(distinct last_worker) from menzil.jobs") == len(jobs)
    assert queue.one("select bool_and(next_at = last_run_at + every) from menzil.jobs")
    queue.conn.execute("update menzil.job set next_at = now() - interval '1 s' where name = 'inbox'")
    assert [queue.call("job_claim") for _ in range(2)] == ["inbox", None]


def test_a_worker_does_not_wait_for_another_that_is_claiming(queue: Queue, connect) -> None:
    slow, quick = Queue(connect(autocommit=False)), Queue(connect())
    quick.conn.execute("set lock_timeout = '20s'")
    first = slow.call("job_claim")
    others = [quick.call("job_claim") for _ in queue.all(JOBS)]
    assert first not in others
    assert others[-1] is None
    slow.conn.rollback()
    assert quick.call("job_claim") == first


def test_a_job_that_does_not_exist_is_refused(queue: Queue) -> None:
    for name in ("nonsense", None):
        with pytest.raises(psycopg.errors.UndefinedObject):
            queue.call("job_run", name)


# --- rounds -----------------------------------------------------------------------------------------------------------


def test_a_call_does_every_job_and_another_none(queue: Queue) -> None:
    queue.conn.execute("call menzil.run_jobs('w')")
    rows = queue.all("select name, last_worker, last_count, last_error from menzil.jobs")
    assert [row for row in rows if row.last_worker != "w" or row.last_count is None or row.last_error is not None] == []
    queue.conn.execute("update menzil.job set last_worker = null where every >= interval '1 min'")
    queue.conn.execute("call menzil.run_jobs('w')")
    assert queue.one("select count(last_worker) from menzil.job where every >= interval '1 min'") == 0


def test_a_job_that_fails_says_so_and_stops_no_other(queue: Queue, failing: str) -> None:
    queue.conn.execute("call menzil.run_jobs('w')")
    assert queue.all("select name from menzil.jobs where last_error is not null or last_run_at is null") == [(failing,)]
    error = queue.one("select last_error from menzil.jobs where name = %s", failing)
    assert error == "22012: division by zero"
    assert [row.status for row in queue.rows("health_check") if row.check_name == "jobs"] == ["warning"]
    queue.conn.execute("update menzil.job set call = '1' where name = %s", [failing])
    assert run(queue, failing) == 1


def test_jobs_commit_one_by_one(queue: Queue, connect, failing: str) -> None:
    """A round that waits for a lock keeps no lock of an earlier round."""
    slow = (
        "update menzil.job set call = '(select 1 from pg_sleep(1))', every = '100 ms', next_at = now() where name = %s"
    )
    queue.conn.execute(slow, [failing])
    other = connect()
    sql = "select pid from pg_stat_activity where query like 'call menzil.run_jobs%' and wait_event = 'PgSleep'"
    pid = None
    with psycopg.Connection.connect(other.info.dsn, password=other.info.password, autocommit=True) as worker:
        thread = threading.Thread(target=lambda: worker.execute("call menzil.run_jobs('w')"))
        thread.start()
        deadline = time.monotonic() + 60
        while pid is None and time.monotonic() < deadline:
            row = other.execute(sql).fetchone()
            pid = row[0] if row else None
        held = other.execute(
            """select distinct mode from pg_locks where pid = %s and locktype = 'relation' and mode not in
               ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')""",
            [pid],
        ).fetchall()
        thread.join()
    assert pid is not None
    assert held == []


def test_rounds_cannot_be_run_inside_a_transaction(queue: Queue, connect) -> None:
    with pytest.raises(psycopg.errors.InvalidTransactionTermination):
        connect(autocommit=False).execute("call menzil.run_jobs()")


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_rounds_count_what_was_sent_where_another_isolation_is_the_default(queue: Queue, connect, level: str) -> None:
    correlation = "6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11"
    queue.send(correlation_id=correlation)
    strict = connect()
    strict.execute(f"set default_transaction_isolation = '{level}'")
    strict.execute("call menzil.run_jobs()")
    assert queue.one("select sum(sent) from menzil.pulse") == 1
    assert queue.one("select count(*) from menzil.messages_with_correlation(%s)", correlation) == 1
    assert queue.one("select last_count from menzil.jobs where name = 'lookups'") == 1


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_round_in_another_isolation_is_refused(queue: Queue, connect, level: str) -> None:
    queue.send()
    strict = connect()
    strict.execute(f"set default_transaction_isolation = '{level}'")
    with pytest.raises(psycopg.errors.ActiveSqlTransaction) as refused:
        strict.execute("select menzil.job_run('pulse')")
    assert "call menzil.run_jobs()" in str(refused.value.diag.message_hint)
    strict.execute("begin isolation level read committed")
    strict.execute("select menzil.job_run('pulse')")
    strict.execute("commit")
    assert queue.one("select sum(sent) from menzil.pulse") == 1


def test_a_round_gives_up_where_another_transaction_holds_the_table(queue: Queue, connect) -> None:
    queue.conn.execute("delete from menzil.archive_month where month_start > now() + interval '70 days'")
    month = queue.one("select to_char(now() at time zone 'UTC' + interval '3 months', '\"menzil.archive\"_YYYY_MM')")
    queue.conn.execute(f"drop table {month}")
    holder = connect(autocommit=False)
    holder.execute("lock table menzil.archive_default in access share mode")
    queue.conn.execute("set statement_timeout = '60s'")  # one that does not give up waits for ever
    assert run(queue, "partitions") == 0
    queue.conn.execute("reset statement_timeout")
    holder.rollback()
    assert run(queue, "partitions") == 1


# --- what they do -----------------------------------------------------------------------------------------------------


def test_recovery_expiry_and_releases(queue: Queue) -> None:
    soon = queue.one("select now() + interval '30 seconds'")
    lost = queue.send()
    queue.lease()
    expiring = queue.send(expires_at=soon)
    queue.call("channel_set", "leaving")
    held = queue.send("leaving")
    queue.call("channel_release", "leaving")
    pass_time(queue.conn, 90)
    assert (run(queue, "recovery"), run(queue, "expiry"), run(queue, "releases")) == (1, 1, 0)
    assert queue.status(lost).retry_count == 1
    assert queue.status(expiring).status == "expired"
    queue.call("message_cancel", held)
    assert run(queue, "releases") == 1


def test_functions_of_another_month_are_made_anew(queue: Queue) -> None:
    queue.conn.execute("update menzil.hot_function set month = '2020-01-01'")
    assert run(queue, "hot_functions") == queue.one("select count(*) from menzil.hot_function")
    month = queue.one("select to_char(now() at time zone 'UTC', '\"menzil.archive\"_YYYY_MM')")
    assert month in queue.one("select prosrc from pg_proc where oid = 'menzil.send(text, jsonb)'::regprocedure")
    assert run(queue, "hot_functions") == 0


def test_a_function_of_another_month_still_sends_and_leases(queue: Queue) -> None:
    """The job may be late: the function then uses the table instead of the partition."""
    try:
        queue.conn.execute(
            "select menzil._ensure_archive_months('2020-01-01', 0);"
            "select menzil._renew_hot(name, '2020-01-15') from menzil.hot_function"
        )
        sent = [queue.call("send", "work", {}), *queue.send_batch("work", 3), queue.send()]
        assert queue.one("select count(distinct tableoid) from menzil.message") == 1
        assert queue.one("select count(*) from menzil.archive_2020_01") == 0
        taken = queue.dequeue(10)
        assert ids(taken) == sent
        assert set(queue.complete(*taken).values()) == {"settled"}
    finally:
        queue.conn.execute("select menzil._renew_hot(name, now()) from menzil.hot_function")


def test_completed_messages_leave_no_trace_where_the_archive_is_not_wanted(queue: Queue) -> None:
    before = queue.send()
    queue.complete(queue.lease())
    assert run(queue, "completed") == 0, "the setting is on"
    queue.call("set_setting", "archive_completed", "false")
    kept = queue.send()
    queue.fail(queue.lease(), "[PERMANENT] no")
    gone = queue.send_batch("work", 5)
    queue.fail(queue.lease(), retry_after="0")
    keyed = queue.send(idempotency_key="k")
    while messages := queue.dequeue(3):
        queue.complete(*messages)
    assert run(queue, "completed") == 5
    assert ids(queue.all("select id from menzil.archive order by id")) == [before, kept, keyed]
    assert queue.one("select count(*) from menzil.returned where id <> %s", kept) == 0
    assert queue.send(idempotency_key="k") == keyed
    queue.call("set_setting", "idempotency_retention", "0")
    assert [run(queue, "completed") for _ in range(2)].count(1) == 1
    assert ids(queue.all("select id from menzil.archive order by id")) == [before, kept]
    assert queue.one("select count(*) from menzil.done") == 2
    assert queue.one("select max(row_id) from menzil.feed_drop where feed = 'archive'") >= max(gone), "readers are told"


def test_archive_that_is_turned_off_twice_keeps_what_completed_while_it_was_on(queue: Queue) -> None:
    kept = []
    for _ in range(2):
        queue.call("set_setting", "archive_completed", "false")
        queue.send()
        queue.complete(queue.lease())
        assert run(queue, "completed") == 1
        queue.call("set_setting", "archive_completed", "true")
        kept.append(queue.send())
        queue.complete(queue.lease())
    queue.call("set_setting", "archive_completed", "false")
    assert [run(queue, "completed") for _ in range(3)] == [0, 0, 0]
    assert ids(queue.all("select id from menzil.archive order by id")) == kept


def test_more_ends_of_one_transaction_than_a_round_looks_at_do_not_stop_the_clean_up(queue: Queue) -> None:
    queue.call("set_setting", "archive_completed", "false")
    kept = queue.send_batch("work", 30)
    cancelled = "select count(*) filter (where menzil.message_cancel(u.id)) from unnest(%s::bigint[]) u(id)"
    assert queue.one(cancelled, kept) == 30
    assert queue.one("select count(*) from menzil.done") == 30
    for _ in range(15):
        queue.send()
        queue.complete(queue.lease())
    assert sum(queue.call("_cleanup_completed", 10) for _ in range(6)) == 15
    assert ids(queue.all("select id from menzil.archive order by id")) == kept


@pytest.mark.parametrize("times", [1, 2], ids=["turned off", "turned off twice"])
def test_keyed_messages_leave_the_archive_after_the_retention_although_newer_ones_complete(
    queue: Queue, times: int
) -> None:
    """A round looks at what is new, and at what an earlier round had to leave."""
    queue.call("set_setting", "archive_completed", "false")
    for _ in range(times - 1):
        queue.send()
        queue.complete(queue.lease())
        assert run(queue, "completed") == 1
        queue.call("set_setting", "archive_completed", "true")
        queue.call("set_setting", "archive_completed", "false")
    keyed = queue.send(idempotency_key="k")
    queue.complete(queue.lease())
    for retention, left in (("1 day", [keyed]), ("0", [])):
        queue.call("set_setting", "idempotency_retention", retention)
        for _ in range(5):
            queue.send()
            queue.complete(queue.lease())
            run(queue, "completed")
        assert ids(queue.all("select id from menzil.archive")) == left


def test_ends_of_a_dropped_month_go_and_others_stay(queue: Queue) -> None:
    old = queue.send_batch("work", 10)
    queue.complete(*queue.dequeue(10))
    queue.conn.execute("select setval('menzil.message_id', 100000)")
    queue.send()
    queue.complete(queue.lease())
    assert run(queue, "ends") == 0
    queue.conn.execute("delete from menzil.message where id <= %s", [old[-1]])  # as a dropped month does
    assert run(queue, "ends") >= 1
    assert queue.all("select lo_id from menzil.done") == [(100001,)]


def test_a_key_of_a_dropped_month_is_kept_for_its_retention(queue: Queue) -> None:
    """A month may be dropped as soon as it is over and exported: its last messages may have ended a moment ago."""
    free = queue.send(payload={"n": 1}, idempotency_key="cancelled")
    queue.call("message_cancel", free)
    sent = queue.send(payload={"n": 1}, idempotency_key="k")
    plain = queue.send_batch("work", 10)
    queue.complete(queue.lease())
    queue.complete(*queue.dequeue(10))
    queue.conn.execute("select setval('menzil.message_id', 100000)")
    later = queue.send()
    queue.conn.execute("delete from menzil.message where id <= %s", [plain[-1]])  # as a dropped month does
    run(queue, "keys")
    for _ in range(2):
        run(queue, "ends")
        assert queue.send(payload={"n": 1}, idempotency_key="k") == sent
        with pytest.raises(psycopg.errors.UniqueViolation):
            queue.send(payload={"n": 2}, idempotency_key="k")
    assert queue.all("select lo_id from menzil.done") == [(sent,)]  # the end says until when the key is held
    pass_time(queue.conn, 86_401)
    run(queue, "keys")
    run(queue, "ends")
    assert queue.all("select lo_id from menzil.done") == []
    assert queue.send(payload={"n": 2}, idempotency_key="k") > later


def test_keys_of_completed_messages_go_after_the_retention(queue: Queue) -> None:
    live = queue.send(idempotency_key="live", priority=0)
    queue.send(idempotency_key="done", priority=9)
    queue.complete(queue.lease())
    assert run(queue, "keys") == 0
    pass_time(queue.conn, 90_000)
    run(queue, "keys")
    run(queue, "keys")
    assert queue.all("select message_id from menzil.key") == [(live,)]


def test_jobs_go_on_after_the_clock_was_set_back(queue: Queue) -> None:
    queue.conn.execute(
        "update menzil.job set last_run_at = now() + interval '1 hour', next_at = now() + interval '2 hours'"
    )
    assert queue.call("job_claim", "w") is not None
