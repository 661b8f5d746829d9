"""What an export asks of SQL: fingerprints that miss no change, and months that leave only when they are proved."""

from __future__ import annotations

import psycopg
import pytest

from tests.sql.queue import Queue
from tests.sql.test_archive_upkeep import created_at, ended, month, months

# Every column of the archive but created_at, which decides the partition, with another value of its type.
OTHER = {
    "id": "id + 1", "status": "'expired'", "channel": "channel || 'x'", "endpoint_id": "endpoint_id + 1",
    "priority": "priority + 1", "num_attempts": "num_attempts + 1", "retry_count": "retry_count + 1",
    "created_at": "created_at + interval '1 us'", "scheduled_at": "'9999-12-31 23:59:59.999999Z'",
    "expires_at": "'0001-01-01Z'", "first_leased_at": "now()", "leased_at": "now()", "ended_at": "now()",
    "ended_xid": "pg_current_xact_id()", "worker": "''", "payload": "'null'", "content": "''", "payload_hash": "''",
    "ordering_key": "''", "idempotency_key": "''", "correlation_id": "gen_random_uuid()", "headers": "'{}'",
    "metadata": "'{}'", "last_error": "''", "state": "''", "redrive_of": "1", "replay_of": "1", "response": "'{}'",
}  # fmt: skip


def fingerprint(queue: Queue, back: int) -> tuple[int, object, int]:
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
    queue.conn.execute("update menzil.archive set payload = null")
    before = fingerprint(queue, 3)
    for column, other in OTHER.items():
        with queue.conn.transaction(force_rollback=True):
            queue.conn.execute(f"update menzil.archive set {column} = {other}")
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


def test_a_month_that_somebody_reads_stays_for_now(queue: Queue, connect) -> None:
    ended(queue, 3)
    proof = fingerprint(queue, 3)
    reader = connect()
    reader.autocommit = False
    reader.execute("select count(*) from menzil.archive")
    assert drop(queue, 3, proof) == "busy"
    reader.rollback()
    assert drop(queue, 3, proof) == "dropped"


@pytest.mark.parametrize("call", ["archive_fingerprint(null)", "drop_exported_month(now(), null, 0, 0)"])
def test_an_export_without_values_is_refused(queue: Queue, call: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        queue.all(f"select menzil.{call}")
    assert refused.value.sqlstate == "22004"
