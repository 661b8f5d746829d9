"""What a reader of the change feed was given stays, although workers settle without waiting for the disk."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from menzil.embedded import Embedded
from menzil.install import migrate
from tests.memory import MEMORY

HURRY = "select set_config('synchronous_commit', 'off', true), menzil.message_complete(%s, 1)"


@pytest.fixture
def crashing() -> Iterator[str]:
    """A server of its own whose log is written late."""
    with tempfile.TemporaryDirectory(prefix="mz-", dir=MEMORY, ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        running = Embedded(Path(place) / "pg", durable=False).start()
        migrate(running.dsn)
        with psycopg.connect(running.dsn, autocommit=True) as conn:
            conn.execute("alter system set wal_writer_delay = '10s'")
            conn.execute("select pg_reload_conf()")
        yield running.dsn
        running.close(wait=30)


def _crash(dsn: str) -> psycopg.Connection[tuple[object, ...]]:
    """Kill a backend: PostgreSQL ends all others and recovers from what is in its log. Connect when it has."""
    watcher, victim = psycopg.connect(dsn, autocommit=True), psycopg.connect(dsn, autocommit=True)
    os.kill(victim.info.backend_pid, signal.SIGKILL)
    while not watcher.closed:
        with suppress(psycopg.OperationalError):
            watcher.execute("select")
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        with suppress(psycopg.OperationalError):
            return psycopg.connect(dsn, autocommit=True)
    raise AssertionError("the server does not come back")


@pytest.mark.slow
def test_what_the_feed_gave_is_still_there_after_a_crash(crashing: str) -> None:
    with psycopg.connect(crashing, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('quick')")
        (sent,) = conn.execute("select menzil.send('quick', '1')").fetchone() or ()
        conn.execute("select menzil.message_dequeue(60000)")
        conn.execute(HURRY, (sent,))  # as a worker settles
        with psycopg.connect(crashing, autocommit=True) as reader:
            position = reader.execute("select xid from menzil.feed_position('archive')").fetchone()
            assert position is not None
            given = reader.execute("select id from menzil.archive where ended_xid < %s::text::xid8", position)
            assert given.fetchall() == [(sent,)]
    with _crash(crashing) as conn:
        assert conn.execute("select id from menzil.archive").fetchall() == [(sent,)]
