"""Calls that have to wait: run in a thread, and known to wait before the test goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import psycopg

from tests.sql.clock import until

Answer = TypeVar("Answer")


@contextmanager
def waiting(
    conn: psycopg.Connection, call: Callable[[], Answer], watcher: psycopg.Connection
) -> Iterator[Future[Answer]]:
    """Run the call, which uses conn, until it waits for a lock or is done; the answer is there after the block."""
    pid = conn.info.backend_pid
    look = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(call)
        until(lambda: future.done() or watcher.execute(look, [pid]).fetchone()[0])
        yield future
