"""The one connection of `menzil top`: it reads, its statements are bounded, and a lost one is opened again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import psycopg

from menzil.model.errors import ConnectionFailedError, translate
from menzil.ops import connecting, seat
from menzil.ops.connecting import Conn
from menzil.ops.op import Op
from menzil.ops.run import run
from menzil.watch.finding import Run

T = TypeVar("T")

#: Seconds that one statement, a lock and an open transaction may take.
STATEMENT, LOCK, IDLE = 3.0, 0.1, 5.0


class Link:
    """Asks one question at a time, each in a transaction that writes nothing."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._conn: Conn | None = None

    def open(self) -> Conn:
        """Connect, unless it is connected."""
        if self._conn is None or self._conn.closed:
            options = connecting.options(self._dsn, prepare=False, fallback_application_name="menzil-top")
            self._conn = connecting.connect(self._dsn, options)
            connecting.configure(self._conn)
            self._conn.read_only = True
        return self._conn

    def ask(self, question: Callable[[Run], T]) -> T:
        """Answer with the function of watch; ConnectionFailedError means that the next call connects anew."""
        conn = self.open()
        reader = _Reader(conn)
        try:
            with conn.transaction():
                reader(seat.limits(STATEMENT, LOCK, IDLE))
                return question(reader)
        except ConnectionFailedError:
            self.close()
            raise
        except psycopg.Error as error:
            if conn.broken or conn.closed:
                self.close()
                raise ConnectionFailedError("The connection broke.", hint="it is opened again") from error
            raise translate(error) or error from error

    def close(self) -> None:
        """Let go of the connection."""
        with suppress(psycopg.Error):
            if self._conn is not None:
                self._conn.close()
        self._conn = None


class _Reader:
    """Runs Ops on one connection."""

    def __init__(self, conn: Conn) -> None:
        self._conn = conn

    def __call__(self, op: Op[T]) -> T:
        return run(self._conn, op, own=True)
