"""Strangers that only some servers allow: prepared transactions, and replication slots without a reader."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded
from menzil.install import migrate
from tests.memory import MEMORY
from tests.strangers.stage import Stage
from tests.strangers.table import TWO_PHASE
from tests.strangers.words import Stranger


@pytest.fixture(scope="module")
def two_phase() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="mz-", dir=MEMORY, ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        server = Embedded(Path(place) / "pg", durable=False).start()
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute("alter system set max_prepared_transactions = 20")
            conn.execute("alter system set wal_level = 'logical'")
        server.close(wait=30)
        server.start()
        migrate(server.dsn)
        with Stage(server.dsn, make_conninfo(server.dsn, dbname="postgres")).open() as stage:
            yield stage
        server.close(wait=30)


@pytest.mark.slow
@pytest.mark.parametrize("stranger", TWO_PHASE.strangers, ids=lambda stranger: stranger.name)
def test_stranger_alone(two_phase: Stage, stranger: Stranger):
    found = two_phase.hold([stranger])
    assert not found, "\n".join(found)


def test_sends_can_always_be_prepared_beside_an_idle_worker(two_phase: Stage):
    """A transaction that has notified cannot be prepared, so workers of such a server poll."""
    sent = []
    with psycopg.connect(two_phase.dsn, autocommit=True) as conn:
        for n in range(20):
            two_phase.admin.execute("select menzil.worker_wait()")
            conn.execute("begin")
            sent.append(conn.execute("select menzil.send('idle', '{}')").fetchone())
            conn.execute(f"prepare transaction 'send {n}'".encode())
            conn.execute(f"commit prepared 'send {n}'".encode())
        # A consumer of all channels may have taken some of them already: they are live or ended, and never unknown.
        for one in sent:
            status = conn.execute("select status from menzil.message_status(%s)", one).fetchone()
            assert status is not None
            assert status[0] in ("pending", "processing", "completed", "failed")


def test_message_that_a_prepared_transaction_holds_is_not_said_to_be_freed_by_ending_a_process(two_phase: Stage):
    with psycopg.connect(two_phase.dsn, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('prepared')")
        row = _cancelled(conn)
        conn.execute("prepare transaction 'a cancel'")
        try:
            held = "select sentence, repair from menzil.message_why(%s) where reason = 'held'"
            wanted = (
                "The prepared transaction 'a cancel' holds the message itself: it may be cancelling it. Consumers "
                "leave it out until COMMIT PREPARED or ROLLBACK PREPARED ends it."
            )
            deadline = time.monotonic() + 60
            told: dict[str, str | None] = {}
            # It is told after a second. Before that, a consumer of all channels may have set the message aside.
            while wanted not in told:
                assert time.monotonic() < deadline, told
                time.sleep(0.05)
                told |= conn.execute(held, row).fetchall()
            assert told[wanted] is None
        finally:
            conn.execute("rollback prepared 'a cancel'")


def _cancelled(conn: psycopg.Connection[Any]) -> tuple[int]:
    """A message that the open transaction has cancelled. A consumer of all channels may be faster with some."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        row = conn.execute("select menzil.send('prepared', '{}')").fetchone()
        assert row is not None
        conn.execute("begin")
        if conn.execute("select menzil.message_cancel(%s)", row).fetchone() == (True,):
            return (int(row[0]),)
        conn.execute("rollback")
    raise AssertionError("Consumers took each message before it could be cancelled.")
