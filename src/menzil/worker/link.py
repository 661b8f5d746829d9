"""One connection for one purpose, opened when it is needed and again when the server went away.

A call that fails because the connection broke raises ConnectionFailedError; whoever made it decides whether to make it
again, and rests first: longer each time, until a call succeeds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row

from menzil.model.errors import ConnectionFailedError, UsageError, translate
from menzil.ops.op import Op
from menzil.ops.run import run_async
from menzil.worker.address import Address, Conn
from menzil.worker.log import Log

T = TypeVar("T")

SHORTEST, LONGEST = 0.1, 5.0


# A prepared statement that the server does not know, knows already, or whose answer has changed its shape.
_FORGETFUL = ("26000", "42P05", "0A000")


def _forgetful(error: Exception) -> ConnectionFailedError | None:
    """A server that lost our prepared statements is no better than one that went away."""
    if isinstance(error, psycopg.Error) and error.sqlstate in _FORGETFUL:
        hint = "behind a PgBouncer that is older than 1.21, use prepare=False or --no-prepare"
        return ConnectionFailedError(str(error).strip(), sqlstate=error.sqlstate, hint=hint)
    return None


class Link:
    """A connection that comes back."""

    def __init__(self, purpose: str, address: Address, log: Log) -> None:
        self.purpose = purpose
        self._address = address
        self._log = log
        self._conn: Conn | None = None
        self._opening = asyncio.Lock()
        self._turn = asyncio.Lock()  # tasks share the connection: what one of them runs is over before the next begins
        self._rest = SHORTEST
        self._down = False

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        return self._turn.locked()

    async def connection(self) -> Conn:
        """Return the connection, opened if it is not."""
        conn = self._conn
        if conn is not None and not conn.closed:
            return conn
        async with self._opening:
            conn = self._conn
            if conn is None or conn.closed:
                self._conn = None
                try:
                    conn = self._conn = await self._address.connect(self.purpose)
                except BaseException as error:
                    self._broke(error)
                    raise
        return conn

    async def run(self, op: Op[T]) -> T:
        """Run one Op; it is committed when this returns."""
        async with self._turn:
            conn = await self.connection()
            try:
                if self._address.read_committed:
                    answer = await run_async(conn, op, own=True)
                else:
                    async with conn.transaction():
                        answer = await run_async(conn, op, own=True)
            except UsageError as error:
                self._learn(error)
                raise
            except (ConnectionFailedError, psycopg.Error) as error:
                judged = _forgetful(error) or error
                await self._judge(conn, judged)
                if judged is error:
                    raise
                raise judged from error
            self._works()
            return answer

    async def run_all(self, ops: Sequence[Op[Any]]) -> list[Any]:
        """Run them in one transaction and one round trip, all or none."""
        async with self._turn:
            conn = await self.connection()
            try:
                cursors = [psycopg.AsyncCursor(conn, row_factory=tuple_row) for _ in ops]
                # Statements between two syncs of a pipeline are one transaction. A role with another isolation level
                # by default needs a BEGIN that says READ COMMITTED, which travels in the same pipeline.
                async with conn.pipeline(), nullcontext() if self._address.read_committed else conn.transaction():
                    for op, cursor in zip(ops, cursors, strict=True):
                        await cursor.execute(op.text, op.params, binary=True)
                answers = [op.read(await cursor.fetchall()) for op, cursor in zip(ops, cursors, strict=True)]
            except psycopg.Error as error:
                ours = _forgetful(error) or translate(error)
                self._learn(error)
                await self._judge(conn, ours or error)
                if ours is None:
                    raise
                raise ours from error
            self._works()
            return answers

    def _learn(self, error: UsageError | psycopg.Error) -> None:
        # The role got another isolation level by default after the handshake: the next call says READ COMMITTED.
        if error.sqlstate == "25001":
            self._address.read_committed = False

    async def _judge(self, conn: Conn, error: Exception) -> None:
        # An OperationalError may also be a full disk or a cancelled statement: those leave the connection alone.
        if isinstance(error, ConnectionFailedError) or conn.closed or conn.broken:
            self._broke(error)
            await self.close()

    def _broke(self, error: BaseException) -> None:
        if not self._down and isinstance(error, ConnectionFailedError):
            self._down = True
            self._log.warning("connection_lost", link=self.purpose, error=error.message)

    def _works(self) -> None:
        self._rest = SHORTEST
        if self._down:
            self._down = False
            self._log.info("connected_again", link=self.purpose)

    async def rest(self, longest: float = LONGEST) -> None:
        """Wait before the next try, a little longer each time and never at the same moment as others."""
        pause, self._rest = min(self._rest, longest), min(LONGEST, self._rest * 2)
        await asyncio.sleep(pause * random.uniform(0.5, 1))

    async def close(self) -> None:
        """Close the connection; the next call opens another."""
        conn, self._conn = self._conn, None
        if conn is not None:
            with suppress(Exception):
                await conn.close()
