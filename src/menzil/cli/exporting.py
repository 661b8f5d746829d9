"""The connection of an exporter: opened when it is needed, again after it broke, and bounded in what it may cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

from menzil.cli.database import connect, demand
from menzil.model.errors import MenzilError
from menzil.ops import seat
from menzil.ops.databases import Named
from menzil.ops.op import Op
from menzil.ops.run import run
from menzil.telemetry.exporters import Exporters

T = TypeVar("T")

#: Seconds of one statement, of a wait for a lock, and of a pause in a transaction.
LIMITS = (5.0, 0.1, 5.0)


@contextmanager
def scraping_all(named: Sequence[Named]) -> Iterator[Exporters]:
    """Exporters of several databases, each with a connection of its own."""
    databases = {one.name: Scraped(one.dsn) for one in named}
    exporters = Exporters({name: scraped.run for name, scraped in databases.items()})
    try:
        yield exporters
    finally:
        exporters.close()
        for scraped in databases.values():
            scraped.close()


class Scraped:
    """A database that is scraped. Only one thread at a time uses it."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._conn: psycopg.Connection[Any] | None = None

    def run(self, op: Op[T]) -> T:
        """Run one Op in a transaction that reads only."""
        conn = self._conn
        if conn is None or conn.closed:
            conn = self._open()
        try:
            with conn.transaction():
                run(conn, seat.limits(*LIMITS))
                return run(conn, op)
        except (MenzilError, psycopg.Error):
            self.close()  # after any error the next scrape connects anew
            raise

    def _open(self) -> psycopg.Connection[Any]:
        conn = connect(self._dsn)
        try:
            demand(conn, self._dsn)
            conn.read_only = True
            conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        except BaseException:
            conn.close()
            raise
        self._conn = conn
        return conn

    def close(self) -> None:
        """Let go of the connection."""
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.close()
