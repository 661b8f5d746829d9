"""One connection for one purpose, opened when it is needed and again when the server went away.

A call that fails because the connection broke raises ConnectionFailedError; the caller decides whether to make it
again, and rests first: longer each time, until a call succeeds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from menzil.model.errors import READ_ONLY, ConnectionFailedError, MenzilError, read_only, translate
from menzil.ops.connecting import NOT_READ_COMMITTED
from menzil.ops.op import Op
from menzil.ops.preparing import LOST, outdated
from menzil.ops.run import raise_in_our_words, run_async
from menzil.worker.address import Address, Conn, SyncConn
from menzil.worker.log import Log

T = TypeVar("T")

SHORTEST, LONGEST = 0.1, 5.0
#: Seconds of rest after which a connection is looked at before it is used: idle_session_timeout may have ended it.
RESTED = 0.2


def hung_up(conn: Conn | SyncConn) -> bool:
    """Tell whether the server has ended this connection while it rested; seen without a round trip."""
    try:
        # The first read may find the last words of the server, the second finds the end and raises.
        conn.pgconn.consume_input()
        conn.pgconn.consume_input()
    except psycopg.Error:
        return True
    return False


async def _refuse_read_only(conn: Conn) -> None:
    """Refuse a connection on which the server takes no writes: a standby, or where the default says so.

    It is asked. What it announced when the connection was opened may be old: a pooler repeats what it was told once.
    """
    try:
        cursor = await psycopg.AsyncCursor(conn, row_factory=tuple_row).execute("show transaction_read_only")
        (answer,) = await cursor.fetchone() or ("",)
    except psycopg.Error as error:
        raise translate(error) or error from error
    if answer == "on":
        raise _no_writes()


def _passing(error: MenzilError | psycopg.Error) -> ConnectionFailedError | None:
    """What a new connection may cure: a server that only reads since a failover, a statement older than a migration."""
    if error.sqlstate == READ_ONLY:
        return _no_writes()
    if outdated(error):
        return ConnectionFailedError(str(error).strip(), sqlstate=error.sqlstate)
    return None


def _no_writes() -> ConnectionFailedError:
    refused = read_only()
    return ConnectionFailedError(refused.message, sqlstate=READ_ONLY, hint=refused.hint)


class Link:
    """A connection that comes back."""

    def __init__(self, purpose: str, address: Address, log: Log) -> None:
        self.purpose = purpose
        self._address = address
        self._log = log
        self._conn: Conn | None = None
        self._opening = asyncio.Lock()
        self._turn = asyncio.Lock()  # tasks share the connection: what one of them runs is over before the next begins
        self._used_at = 0.0
        self._rest = SHORTEST
        self._down = False
        self._no_writes = False  # whether the server has refused a write since the last call that succeeded
        self.reconnects = 0

    @property
    def is_down(self) -> bool:
        """Whether the last call found no connection."""
        return self._down

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        return self._turn.locked()

    async def connection(self) -> Conn:
        """Return the connection, opened if it is not."""
        conn = self._conn
        if conn is not None and not conn.closed and (monotonic() < self._used_at + RESTED or not hung_up(conn)):
            return conn
        async with self._opening:
            conn = self._conn
            if conn is None or conn.closed or hung_up(conn):
                await self.close()
                try:
                    conn = self._conn = await self._address.connect(self.purpose)
                    if self._no_writes:
                        # A call that happens to write nothing, a lease that finds nothing, would look like success.
                        await _refuse_read_only(conn)
                except BaseException as error:
                    self._broke(error)
                    await self.close()
                    raise
        return conn

    async def run(self, op: Op[T]) -> T:
        """Run one Op; it is committed when this returns."""

        async def work(conn: Conn) -> T:
            if self._address.read_committed:
                return await run_async(conn, op, own=True)
            async with conn.transaction():
                return await run_async(conn, op, own=True)

        return await self._do(work)

    async def run_all(self, ops: Sequence[Op[Any]]) -> list[Any]:
        """Run them in one transaction and one round trip, all or none."""

        async def work(conn: Conn) -> list[Any]:
            cursors = [psycopg.AsyncCursor(conn, row_factory=tuple_row) for _ in ops]
            # Statements between two syncs of a pipeline are one transaction. A role with another isolation level
            # by default needs a BEGIN that says READ COMMITTED, which travels in the same pipeline.
            try:
                async with conn.pipeline(), nullcontext() if self._address.read_committed else conn.transaction():
                    for op, cursor in zip(ops, cursors, strict=True):
                        await cursor.execute(op.text, op.params, binary=True)
            except psycopg.Error as error:
                raise_in_our_words(error, ops[-1], conn, True)
                raise
            return [op.read(await cursor.fetchall()) for op, cursor in zip(ops, cursors, strict=True)]

        return await self._do(work)

    async def _do(self, work: Callable[[Conn], Awaitable[T]]) -> T:
        waits = self._turn.locked()
        async with self._turn:
            if waits:
                # A hint wakes every source. What the call before leased begins first; then the next call is made.
                await asyncio.sleep(0)
            conn = await self.connection()
            self._address.preparing.fit(conn)
            try:
                answer = await self._prepared(conn, work)
            except (MenzilError, psycopg.Error) as error:
                self._learn(error)
                ours = _passing(error) or (error if isinstance(error, MenzilError) else translate(error))
                await self._judge(conn, ours or error)
                if ours is None or ours is error:
                    raise
                raise ours from error
            except asyncio.CancelledError:
                # A task that is cancelled while it is being cancelled leaves its statement under way. The next call on
                # this connection, the goodbye of a worker that stops, would be refused.
                if conn.pgconn.transaction_status != TransactionStatus.IDLE:
                    await self.close()
                raise
            self._works()
            self._used_at = monotonic()
            return answer

    async def _prepared(self, conn: Conn, work: Callable[[Conn], Awaitable[T]]) -> T:
        try:
            return await work(conn)
        except LOST as error:
            # Refused before anything of it ran, and what ran before it in the same transaction is rolled back.
            if not self._address.preparing.gave_up(conn, error):
                raise
            return await work(conn)

    def _learn(self, error: MenzilError | psycopg.Error) -> None:
        # The role got another isolation level by default after the handshake: the next call says READ COMMITTED.
        if error.sqlstate == NOT_READ_COMMITTED:
            self._address.read_committed = False

    async def _judge(self, conn: Conn, error: Exception) -> None:
        # An OperationalError may also be a full disk or a cancelled statement: those leave the connection alone.
        if isinstance(error, ConnectionFailedError) or conn.closed or conn.broken:
            self._broke(error)
            await self.close()

    def _broke(self, error: BaseException) -> None:
        if not isinstance(error, ConnectionFailedError):
            return
        # Until a call succeeds: a standby that could not be reached between two looks is still a standby.
        self._no_writes = self._no_writes or error.sqlstate == READ_ONLY
        if not self._down:
            self._down = True
            self._log.warning("connection_lost", link=self.purpose, error=error.message)

    def _works(self) -> None:
        self._rest = SHORTEST
        if self._down:
            self._down = self._no_writes = False
            self.reconnects += 1
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
