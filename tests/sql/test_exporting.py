"""What an export asks of SQL: fingerprints that miss no change, and months that leave only when they are proved."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import psycopg
import pytest

from menzil.ops.looking_messages import attempts
from menzil.ops.run import run
from tests.sql.background import waiting
from tests.sql.clock import created_at, until
from tests.sql.queue import Queue
from tests.sql.test_archive import months
from tests.sql.test_archive_upkeep import month

# Every column of the archive with a change that gives it another value and leaves the other columns alone.
MESSAGE = {
    "id": "id + 1", "priority": "priority + 1", "created_at": "created_at + interval '1 us'",
    "scheduled_at": "'9999-12-31 23:59:59.999999Z'", "expires_at": "'0001-01-01Z'", "payload": "'null'",
    "content": "''", "payload_hash": "''", "ordering_key": "''", "idempotency_key": "''",
    "correlation_id": "gen_random_uuid()", "headers": "'{}'", "metadata": "'{}'", "redrive_of": "1", "replay_of": "1",
}  # fmt: skip
DONE = {
    "status": "status = 'expired'", "num_attempts": "attempt = attempt + 1",
    "leased_at": "leased_at = now()", "ended_at": "ended_at = now()", "ended_xid": "ended_xid = pg_current_xact_id()",
    "worker": "worker = ''", "response": "responses = array['{}'::jsonb]",
}  # fmt: skip
RETURNED = {
    "retry_count": "retry_count = retry_count + 1", "first_leased_at": "first_leased_at = now()",
    "last_error": "last_error = ''", "state": "state = ''",
}  # fmt: skip
OTHER = {
    **{column: f"update menzil.message set {column} = {value}" for column, value in MESSAGE.items()},
    "id": "update menzil.message set id = id + 1; update menzil.done set lo_id = lo_id + 1, hi_id = hi_id + 1;"
    "update menzil.returned set id = id + 1",
    **{column: f"update menzil.done set {change}" for column, change in DONE.items()},
    **{column: f"update menzil.returned set {change}" for column, change in RETURNED.items()},
    "channel": "update menzil.channel set name = name || 'x'",
    "endpoint_id": "insert into menzil.channel (name, dropped_at) select name, now() from menzil.channel;"
    "update menzil.message set channel_id = (select max(id) from menzil.channel)",
}


def ended(queue: Queue, back: int) -> int:
    """A message of a month that has its partition, which was leased, came back and was cancelled."""
    queue.all("select menzil._make_archive_month(menzil._month_of(now() - make_interval(months => %s)))", back)
    sent = queue.send()
    queue.fail(queue.lease())
    created_at(queue.conn, sent, queue.one("select now() - make_interval(months => %s)", back))
    queue.call("message_cancel", sent)
    return sent


def fingerprint(queue: Queue, back: int) -> tuple[int, Decimal, int]:
    at = queue.one("select now() - %s * interval '1 month'", back)
    (row,) = queue.rows("archive_fingerprint", at)
    return row.row_count, row.hash_sum, row.hash_xor


def drop(queue: Queue, back: int, proof: tuple[int, object, int]) -> str:
    return queue.call("drop_exported_month", queue.one("select now() - %s * interval '1 month'", back), *proof)


def test_a_fingerprint_takes_every_column_into_account(queue: Queue) -> None:
    columns = {
        row[0]
        for row in queue.all(
            "select attname from pg_attribute where attrelid = 'menzil.archive'::regclass and attnum > 0"
        )
    }
    assert columns == OTHER.keys()
    ended(queue, 3)
    queue.conn.execute("update menzil.message set payload = null")
    before = fingerprint(queue, 3)
    texts = "select " + ", ".join(f"{name}::text" for name in columns) + " from menzil.archive"
    row = queue.one(texts)
    for column, change in OTHER.items():
        with queue.conn.transaction(force_rollback=True):
            for statement in change.split(";"):
                queue.conn.execute(statement)
            changed = queue.one(texts)
            assert {name for name in columns if getattr(changed, name) != getattr(row, name)} == {column}
            assert fingerprint(queue, 3) != before, column
    assert fingerprint(queue, 3) == before


def test_fingerprints_of_parts_add_up(queue: Queue) -> None:
    for _ in range(3):
        ended(queue, 3)
    middle = queue.one("select ended_xid::text from menzil.archive order by ended_xid offset 1 limit 1")
    at = queue.one("select now() - interval '3 months'")
    (whole,), (low,), (high,) = (
        queue.rows("archive_fingerprint", at, *bounds) for bounds in ((), (None, middle), (middle, None))
    )
    assert (low.row_count, high.row_count) == (1, 2)
    assert whole.hash_sum == low.hash_sum + high.hash_sum
    assert whole.hash_xor == low.hash_xor ^ high.hash_xor
    assert whole.attempt_sum == low.attempt_sum + high.attempt_sum


def test_fingerprints_of_times_of_creation_add_up(queue: Queue) -> None:
    for _ in range(3):
        ended(queue, 3)
    at = queue.one("select now() - interval '3 months'")
    middle = queue.one("select created_at from menzil.archive order by created_at offset 1 limit 1")
    (whole,), (low,), (high,) = (
        queue.rows("archive_fingerprint", at, None, None, *bounds) for bounds in ((), (None, middle), (middle, None))
    )
    assert whole.row_count == low.row_count + high.row_count == 3
    assert high.row_count >= 1
    assert whole.hash_sum == low.hash_sum + high.hash_sum
    assert whole.attempt_sum == low.attempt_sum + high.attempt_sum


def test_a_census_counts_what_a_fingerprint_hashes_and_rows_with_their_hashes_add_up_to_it(queue: Queue) -> None:
    for _ in range(3):
        ended(queue, 3)
    at = queue.one("select now() - interval '3 months'")
    middle = queue.one("select ended_xid::text from menzil.archive order by ended_xid offset 1 limit 1")
    created = queue.one("select created_at from menzil.archive order by created_at offset 1 limit 1")
    both = ("row_count", "min_id", "max_id", "min_created_at", "max_created_at", "failed_attempt_count")
    for bounds in ((), (None, middle), (middle, None), (None, None, None, created), (None, None, created), ("1", "1")):
        (said,), (counted,) = (queue.rows(name, at, *bounds) for name in ("archive_fingerprint", "archive_census"))
        assert [getattr(said, name) for name in both] == [getattr(counted, name) for name in both]
    (whole,), (counted,) = (queue.rows(name, at) for name in ("archive_fingerprint", "archive_census"))
    ids = queue.one("select array_agg(id) from menzil.archive")
    assert (counted.row_count, counted.id_sum, counted.failed_attempt_id_sum) == (3, sum(ids), sum(ids))
    columns = queue.one(
        "select string_agg(case when atttypid = any ('{jsonb,uuid,xid8}'::regtype[]) then attname || '::text' "
        "else attname end, ', ' order by attnum) from pg_attribute "
        "where attrelid = 'menzil.archive'::regclass and attnum > 0"
    )
    assert queue.one(f"select sum(menzil.message_hash({columns})) from menzil.archive") == whole.hash_sum
    tries = (
        "message_id, attempt, outcome, leased_at, ended_at, worker, error, status_code, duration_ms::double precision"
    )
    assert queue.one(f"select sum(menzil.try_hash({tries})) from menzil.attempts") == whole.attempt_sum


EVENT = {
    "id": "id + 1000", "event_type": "'other'", "entity_type": "''", "entity_id": "''", "old_value": "'null'",
    "new_value": "'null'", "metadata": "'null'", "created_at": "created_at + interval '1 us'",
    "xid": "'1'",
}  # fmt: skip
# Columns that the lake does not hold.
AT_HOME = {"actor", "via"}


def test_a_fingerprint_of_the_event_log_takes_every_column_into_account(queue: Queue) -> None:
    names = queue.all("select attname from pg_attribute where attrelid = 'menzil.event_log'::regclass and attnum > 0")
    assert {name for (name,) in names} == EVENT.keys() | AT_HOME
    queue.call("channel_set", "one")
    queue.call("channel_set", "two")
    (before,) = queue.rows("event_log_fingerprint")
    assert before.row_count == queue.one("select count(*) from menzil.event_log") >= 2
    for column, other in EVENT.items():
        with queue.conn.transaction(force_rollback=True):
            if column == "id":
                queue.conn.execute("alter table menzil.event alter column id set generated by default")
            queue.conn.execute(
                f"update menzil.event set {column} = {other} where id = (select max(id) from menzil.event)"
            )
            (after,) = queue.rows("event_log_fingerprint")
            assert (after.hash_sum, after.hash_xor) != (before.hash_sum, before.hash_xor), column
    middle = queue.one("select max(xid)::text from menzil.event_log")
    (low,), (high,) = (queue.rows("event_log_fingerprint", *bounds) for bounds in ((None, middle), (middle, None)))
    assert (low.row_count + high.row_count, low.hash_sum + high.hash_sum) == (before.row_count, before.hash_sum)


def test_a_month_leaves_only_with_the_right_proof(queue: Queue) -> None:
    ended(queue, 3)
    count, total, xor = proof = fingerprint(queue, 3)
    for wrong in ((count + 1, total, xor), (count, total + 1, xor), (count, total, xor ^ 1)):
        assert drop(queue, 3, wrong) == "changed"
    late = ended(queue, 3)
    assert drop(queue, 3, proof) == "changed"
    assert queue.archived(late)
    assert drop(queue, 3, fingerprint(queue, 3)) == "dropped"
    assert month(queue, 3) not in months(queue)
    assert drop(queue, 3, proof) == "absent"
    assert queue.one("select count(*) from menzil.event_log where event_type = 'archive.exported'") == 1


def test_an_open_month_stays(queue: Queue) -> None:
    assert drop(queue, 0, fingerprint(queue, 0)) == "open"
    ended(queue, 3)
    alive = queue.send()
    created_at(queue.conn, alive, queue.one("select now() - interval '3 months'"))
    assert drop(queue, 3, fingerprint(queue, 3)) == "open"
    open_months = {row.month: row.is_open for row in queue.rows("archive_months")}
    assert all(open_months.values())
    queue.call("message_cancel", alive)
    assert drop(queue, 3, fingerprint(queue, 3)) == "dropped"


def test_a_month_with_dead_letters_stays_until_they_are_gone(queue: Queue) -> None:
    ended(queue, 3)
    dead = queue.send()
    queue.fail(queue.lease(), "[PERMANENT] no")
    created_at(queue.conn, dead, queue.one("select now() - interval '3 months'"))
    assert drop(queue, 3, fingerprint(queue, 3)) == "open"
    assert all(row.is_open for row in queue.rows("archive_months"))
    queue.conn.execute("delete from menzil.dead_letter")
    assert [row.is_open for row in queue.rows("archive_months")].count(False) == 1
    assert drop(queue, 3, fingerprint(queue, 3)) == "dropped"


def test_a_month_whose_last_end_is_not_committed_stays(queue: Queue, connect) -> None:
    ended(queue, 3)
    alive = queue.send()
    lease = queue.lease()
    created_at(queue.conn, alive, queue.one("select now() - interval '3 months'"))
    proof = fingerprint(queue, 3)
    settling = connect(autocommit=False)
    settling.execute("select menzil.message_complete(%s, %s)", [[lease.id], [lease.num_attempts]])
    assert drop(queue, 3, proof) == "open"
    settling.commit()
    assert drop(queue, 3, proof) == "changed"
    assert drop(queue, 3, fingerprint(queue, 3)) == "dropped"


def test_a_month_that_somebody_reads_stays_for_now(queue: Queue, connect) -> None:
    ended(queue, 3)
    proof = fingerprint(queue, 3)
    reader = connect()
    reader.autocommit = False
    reader.execute("select count(*) from menzil.archive")
    assert drop(queue, 3, proof) == "busy"
    reader.rollback()
    assert drop(queue, 3, proof) == "dropped"


@pytest.mark.parametrize("stranger", ["reads it", "vacuums it"])
def test_a_month_that_is_taken_for_a_moment_leaves_all_the_same(queue: Queue, connect, stranger: str) -> None:
    ended(queue, 3)
    proof = fingerprint(queue, 3)
    name = queue.one("select to_char(now() - interval '3 months', '\"archive_\"YYYY_MM')")
    other = connect(autocommit=False)
    if stranger == "reads it":
        other.execute("select count(*) from menzil.archive")
    else:  # VACUUM takes this lock; an automatic one gives way after deadlock_timeout, a second
        other.execute(f"lock table menzil.{name} in share update exclusive mode")
    # How long the drop waits depends on it, and a busy machine may stop the timer for a while.
    queue.conn.execute("set deadlock_timeout = '14s'")
    leaving = threading.Timer(1.2, other.rollback)
    leaving.start()
    try:
        assert drop(queue, 3, proof) == "dropped"
    finally:
        leaving.join()
    assert queue.one("select current_setting('lock_timeout')") == "0"


def test_a_drop_gives_way_to_a_writer_that_waits_for_its_month(queue: Queue, connect) -> None:
    """The writer holds what the drop needs. Ten tries would take at least 2.7 s, and the writer might meet a deadlock.

    A busy machine may be late, but not always.
    """
    assert any(seconds_to_give_way(queue, connect) < 2 for _ in range(5))


def seconds_to_give_way(queue: Queue, connect) -> float:
    message, proof = ended(queue, 3), fingerprint(queue, 3)
    month_of = queue.one("select to_char(now() - interval '3 months', '\"menzil.archive_\"YYYY_MM')")
    reader, dropper, eraser = Queue(connect(autocommit=False)), Queue(connect()), Queue(connect())
    reader.conn.execute("select count(*) from menzil.archive")
    held = "select exists (select from pg_locks where relation = %s::regclass and pid = %s and granted)"
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(drop, dropper, 3, fingerprint(queue, 3))
        until(lambda: answer.done() or queue.one(held, month_of, dropper.conn.info.backend_pid))
        with waiting(eraser.conn, lambda: eraser.call("message_erase", message), queue.conn) as erased:
            began = time.monotonic()
            assert answer.result() == "busy"
            took = time.monotonic() - began
    assert erased.result() is True
    assert fingerprint(queue, 3) != proof
    reader.conn.rollback()
    return took


def test_a_month_is_held_with_its_long_values_while_it_is_compared(queue: Queue) -> None:
    ended(queue, 3)
    name = queue.one("select to_char(now() - interval '3 months', '\"archive_\"YYYY_MM')")
    with queue.conn.transaction():
        assert drop(queue, 3, (7, 0, 0)) == "changed"
        held = queue.all(
            """select c.relname = %s, l.mode from pg_locks l join pg_class c on c.oid = l.relation
                where l.pid = pg_backend_pid()
                  and c.oid in (select unnest(array[t.oid, t.reltoastrelid]) from pg_class t where t.relname = %s)""",
            name,
            name,
        )
    # Autovacuum takes ShareUpdateExclusiveLock on either of them, and none of these lets it in.
    assert {(True, "ShareRowExclusiveLock"), (False, "ShareUpdateExclusiveLock")} <= set(held)


@pytest.mark.parametrize("call", ["archive_fingerprint(null)", "drop_exported_month(now(), null, 0, 0)"])
def test_an_export_without_values_is_refused(queue: Queue, call: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        queue.all(f"select menzil.{call}")
    assert refused.value.sqlstate == "22004"


@pytest.mark.parametrize("duration", ["1e-400", "-1e-400", "1e400", "-1e400"])
def test_a_duration_that_is_no_double_keeps_no_month_from_being_compared(queue: Queue, duration: str) -> None:
    sent = queue.send()
    lease = queue.lease()
    settle = "select outcome from menzil.message_complete(%s, %s, array[%s::jsonb])"
    assert queue.one(settle, [lease.id], [1], f'{{"duration_ms": {duration}}}') == "settled"
    assert queue.one("select attempt_count from menzil.archive_fingerprint(now())") == 1
    (tried,) = run(queue.conn, attempts(sent))
    assert abs(tried["duration_ms"]) <= 9e14
