"""Handlers with a transaction: their writes and the end of the message commit together, or neither does.

With transaction=True the handler gets a psycopg connection with a transaction open; `orm` is about sessions of ORMs.
When it returns, the message is completed (or deferred) in the same transaction; a lease that was lost meanwhile refuses
that, and everything is rolled back. A failure is rolled back first and settled as always.

The transaction has the isolation level that the role has by default: what the handler writes is the handler's. At
REPEATABLE READ and SERIALIZABLE the database may say that it met another transaction; then the handler runs again. It
also does after a migration, when the database refuses a statement that was prepared before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg

from menzil.model.errors import UsageError, translate
from menzil.model.message import Message
from menzil.model.outcome import Outcome
from menzil.ops.op import Op, nothing
from menzil.ops.preparing import LOST, outdated
from menzil.ops.run import run, run_async
from menzil.worker import outcomes
from menzil.worker.address import Address, Conn, SyncConn
from menzil.worker.django import tidily, tidily_awaited
from menzil.worker.endings import UndoError, ending, settling
from menzil.worker.handler import Function, Handler
from menzil.worker.link import hung_up
from menzil.worker.log import Hide
from menzil.worker.orm import causes, in_async_session, in_django, in_session, met_another
from menzil.worker.outcomes import Settled
from menzil.worker.source import Call
from menzil.worker.threads import Threads
from menzil.worker.ways import Way

#: How often a handler runs again at once because its transaction met another one; after that it has failed.
AGAIN = 4


def _again(error: Exception) -> bool:
    """Whether the transaction may succeed when it runs again.

    It met another one, a pooler lost its statements, or a statement is older than its tables: drivers forget those when
    the transaction rolls back.
    """
    return met_another(error) or _lost(error) is not None or any(map(outdated, causes(error)))


def _lost(error: Exception) -> psycopg.Error | None:
    """The refusal of a statement that a pooler lost; a menzil call of the handler has wrapped it."""
    return next((one for one in causes(error) if isinstance(one, LOST)), None)


class Lender:
    """Connections for handlers, as many as deliver at once; kept for the next message unless they broke."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._free: list[Conn] = []
        self._free_sync: list[SyncConn] = []

    async def take(self) -> Conn:
        """Lend one to a handler that is awaited."""
        while self._free:
            conn = self._free.pop()
            if _usable(conn):
                self._address.preparing.fit(conn)
                return conn
            await conn.close()
        return await self._address.connect("handler", plain=False)

    def take_sync(self) -> SyncConn:
        """Lend one to a handler in a thread."""
        while self._free_sync:
            conn = self._free_sync.pop()
            if _usable(conn):
                self._address.preparing.fit(conn)
                return conn
            conn.close()
        return self._address.connect_sync("handler")

    async def give(self, conn: Conn) -> None:
        """Take one back."""
        if _usable(conn):
            self._free.append(conn)
        else:
            await conn.close()

    def give_sync(self, conn: SyncConn) -> None:
        """Take one back."""
        if _usable(conn):
            self._free_sync.append(conn)
        else:
            conn.close()

    def lost(self, conn: Conn | SyncConn, error: psycopg.Error) -> None:
        """A pooler lost a statement that the handler had prepared: no handler prepares any more."""
        self._address.preparing.gave_up(conn, error)

    async def close(self) -> None:
        """Close those that are not in use."""
        while self._free:
            await self._free.pop().close()
        while self._free_sync:
            self._free_sync.pop().close()


def _usable(conn: Conn | SyncConn) -> bool:
    if conn.closed or conn.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        return False
    return not hung_up(conn)


def call_within(handler: Handler, lender: Lender, threads: Callable[[], Threads], hide: Hide) -> Call:
    """Return how a handler with a transaction is called."""
    once = _once(handler, lender, hide)

    async def awaited(message: Message) -> Any:
        for _ in range(AGAIN):
            try:
                return await once(message)
            except Exception as error:
                if not _again(error):
                    raise
        return await once(message)

    def in_thread(message: Message) -> Any:
        for _ in range(AGAIN):
            try:
                return once(message)
            except Exception as error:
                if not _again(error):
                    raise
        return once(message)

    if handler.is_async:
        return tidily_awaited(awaited)
    tidy = tidily(in_thread)
    return lambda message: threads().start(tidy, message)


def _once(handler: Handler, lender: Lender, hide: Hide) -> Callable[[Message], Any]:
    match handler.way:
        case Way.SESSION:
            return in_session(handler, hide)
        case Way.ASYNC_SESSION:
            return in_async_session(handler, hide)
        case Way.DJANGO:
            return in_django(handler, hide)
        case _:
            return partial(_try if handler.is_async else _try_sync, handler.function, lender, hide)


async def _try(function: Function, lender: Lender, hide: Hide, message: Message) -> Outcome | Settled:
    conn = await lender.take()
    try:
        async with conn.transaction():
            outcome = outcomes.read(await function(message, conn), message.channel)
            op = ending(message, outcome, hide)
            _still_open(conn, message)
            with settling(message, outcome):
                await _end(conn, op)
    except UndoError as undo:
        return undo.outcome
    except Exception as error:
        if lost := _lost(error):
            lender.lost(conn, lost)
        raise
    finally:
        # Also when it is cancelled: the connection is rolled back by then.
        await lender.give(conn)
    return Settled(outcome)


def _try_sync(function: Function, lender: Lender, hide: Hide, message: Message) -> Outcome | Settled:
    conn = lender.take_sync()
    try:
        with conn.transaction():
            outcome = outcomes.read(function(message, conn), message.channel)
            op = ending(message, outcome, hide)
            _still_open(conn, message)
            with settling(message, outcome):
                _end_sync(conn, op)
    except UndoError as undo:
        return undo.outcome
    except Exception as error:
        if lost := _lost(error):
            lender.lost(conn, lost)
        raise
    finally:
        lender.give_sync(conn)
    return Settled(outcome)


def _still_open(conn: Conn | SyncConn, message: Message) -> None:
    """Refuse to complete a message whose handler said COMMIT or ROLLBACK in SQL; psycopg refuses the methods itself."""
    if conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        raise UsageError(
            f"The handler of {message.channel} ended its transaction with COMMIT or ROLLBACK.",
            hint="leave that to menzil: what the handler writes and the end of the message commit together",
        )


async def _end(conn: Conn, op: Op[None]) -> None:
    if op.read is not nothing:
        await run_async(conn, op)
        return
    # A cursor of our own: the handler may have changed the connection's factory; there is no answer to read.
    try:
        await psycopg.AsyncCursor(conn).execute(op.text, op.params)
    except psycopg.Error as error:
        raise translate(error) or error from error


def _end_sync(conn: SyncConn, op: Op[None]) -> None:
    if op.read is not nothing:
        run(conn, op)
        return
    try:
        psycopg.Cursor(conn).execute(op.text, op.params)
    except psycopg.Error as error:
        raise translate(error) or error from error
