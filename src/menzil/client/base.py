"""What both clients are made of: where an Op runs, and who owns the connection.

Without `conn` a call runs on a connection of menzil's own and is committed when it returns. With `conn` it runs in the
caller's transaction, which is the caller's to commit: nothing is committed, no setting is changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from menzil.client.embedded import EmbeddedServer
from menzil.client.pool import AsyncOwnPool, OwnPool, PoolOptions
from menzil.model.durations import Seconds, in_seconds
from menzil.model.errors import UsageError
from menzil.model.secrets import secret_keys
from menzil.model.wire import Dumps, Loads, json_dumps, json_loads
from menzil.ops.borrow import AsyncBorrowed, Borrowed, borrow, borrow_async, run_on, run_on_async
from menzil.ops.choosing import Url, choose, given, here
from menzil.ops.connecting import NOT_READ_COMMITTED, AsyncConn, Conn
from menzil.ops.foreign import AsyncForeign, Foreign
from menzil.ops.op import Op
from menzil.ops.run import run, run_async
from menzil.telemetry.tracing import Tracing, read_tracing, spans

if TYPE_CHECKING:
    from menzil.telemetry.operation import Where
    from menzil.telemetry.spans import Spans

T = TypeVar("T")

#: How often a call of our own is tried again when the database says that it met another one and wrote nothing.
RETRIES = 3


class _Client:
    """What needs no I/O."""

    def __init__(
        self,
        dsn: str | Url | None = None,
        *,
        prepare: bool = True,
        max_connections: int = 4,
        timeout: Seconds = 30,
        loads: Loads = json_loads,
        dumps: Dumps = json_dumps,
        secret_key: str | None = None,
        tracing: Tracing | bool = True,
    ) -> None:
        """Connect lazily to `dsn`, else to what MENZIL_DSN, menzil.toml or PG* name, else to the embedded PostgreSQL.

        The environment is read at the first call; the search for menzil.toml begins where this client was made.

        prepare          False prepares no statements; found out by itself behind a PgBouncer before 1.21
        max_connections  how many calls may run at once; more of them wait
        timeout          how many seconds they wait
        loads, dumps     another JSON library, or a richer one
        secret_key       encrypts secrets of endpoints before they leave this process; MENZIL_SECRET_KEY unless given
        tracing          how calls become spans in a program that has installed an OpenTelemetry SDK; False: not at all
        """
        self._options = PoolOptions(prepare=prepare, max_size=max_connections, timeout=in_seconds("timeout", timeout))
        # What is not a connection string is refused now, not at the first call.
        self._dsn = None if dsn is None else given(dsn)
        self._directory = here()  # a daemon may go elsewhere before the first call
        self._server = EmbeddedServer()
        self._loads = loads
        self._dumps = dumps
        self._secret_keys = secret_keys(secret_key)
        self._tracing = read_tracing(tracing)
        self._closed = False

    def _spans(self) -> Spans | None:
        """What makes the spans of a call; None unless the program traces."""
        return spans(self._tracing)

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("This client is closed.")

    def _chosen(self) -> str | None:
        if self._dsn is None:
            self._dsn = choose(None, directory=self._directory)
        return self._dsn


class Client(_Client):
    """The sync half."""

    _pool: OwnPool | None = None

    def _where(self, conn: Borrowed | None) -> Where | None:
        """Which server was asked, as far as a span says so."""
        return None if conn is not None or self._pool is None else self._pool.where

    @property
    def dsn(self) -> str:
        """Where this client connects to; starts the embedded PostgreSQL if that is where."""
        self._check_open()
        chosen = self._chosen()
        return chosen if chosen is not None else self._server.start()

    def _run(self, op: Op[T], conn: Borrowed | None) -> T:
        if conn is not None:
            return run_on(conn, op)
        try:
            return self._run_alone(op)
        except psycopg.errors.SerializationFailure:
            return self._again([op], RETRIES - 1)[0]

    def _run_all(self, ops: Sequence[Op[T]], conn: Borrowed | None) -> list[T]:
        """Run them all or none."""
        if conn is None:
            return self._again(ops, RETRIES)
        theirs = borrow(conn)
        if isinstance(theirs, Foreign):
            return theirs.run_all(ops)
        if len(ops) > 1 and _commits_each_statement(theirs):
            with theirs.transaction():
                return [run(theirs, op) for op in ops]
        return [run(theirs, op) for op in ops]

    def _again(self, ops: Sequence[Op[T]], tries: int) -> list[T]:
        for _ in range(tries):
            with suppress(psycopg.errors.SerializationFailure):
                return self._run_own(ops)
        return self._run_own(ops)

    def _run_alone(self, op: Op[T]) -> T:
        """One statement commits itself, and is what most calls are."""
        pool = self._pool or self._own_pool()
        own = pool.take()
        try:
            if pool.read_committed:
                return run(own, op, own=True)
        except UsageError as error:
            if error.sqlstate != NOT_READ_COMMITTED:
                raise
            pool.read_committed = False  # the role has got another isolation level by default since the handshake
        except psycopg.Error as error:
            if not pool.preparing.gave_up(own, error):
                raise
            return run(own, op, own=True)
        finally:
            pool.give_back(own)
        return self._run_own([op])[0]

    def _run_own(self, ops: Sequence[Op[T]]) -> list[T]:
        pool = self._own_pool()
        own = pool.take()
        try:
            return _together(own, ops)
        except psycopg.Error as error:
            if not pool.preparing.gave_up(own, error):
                raise
            return _together(own, ops)
        finally:
            pool.give_back(own)

    def _own_pool(self) -> OwnPool:
        self._check_open()
        if self._pool is None:
            self._pool = OwnPool(self.dsn, self._options)
        return self._pool

    def close(self) -> None:
        """Close menzil's own connections, and leave the embedded PostgreSQL to other processes that use it."""
        self._closed = True
        if self._pool is not None:
            self._pool.close()
        self._server.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient(_Client):
    """The async half."""

    _pool: AsyncOwnPool | None = None

    def _where(self, conn: AsyncBorrowed | None) -> Where | None:
        """Which server was asked, as far as a span says so."""
        return None if conn is not None or self._pool is None else self._pool.where

    async def dsn(self) -> str:
        """Where this client connects to; starts the embedded PostgreSQL if that is where."""
        self._check_open()
        chosen = self._chosen()
        return chosen if chosen is not None else await asyncio.to_thread(self._server.start)

    async def _run(self, op: Op[T], conn: AsyncBorrowed | None) -> T:
        if conn is not None:
            return await run_on_async(conn, op)
        return (await self._run_all([op], None))[0]

    async def _run_all(self, ops: Sequence[Op[T]], conn: AsyncBorrowed | None) -> list[T]:
        """Run them all or none."""
        if conn is not None:
            theirs = await borrow_async(conn)
            if isinstance(theirs, AsyncForeign):
                return await theirs.run_all(ops)
            if len(ops) > 1 and _commits_each_statement(theirs):
                async with theirs.transaction():
                    return [await run_async(theirs, op) for op in ops]
            return [await run_async(theirs, op) for op in ops]
        for _ in range(RETRIES):
            with suppress(psycopg.errors.SerializationFailure):
                return await self._run_own(ops)
        return await self._run_own(ops)

    async def _run_own(self, ops: Sequence[Op[T]]) -> list[T]:
        pool = await self._own_pool()
        async with pool.connection() as own:
            try:
                return await _together_async(own, ops, alone=pool.read_committed)
            except UsageError as error:
                if error.sqlstate != NOT_READ_COMMITTED or not pool.read_committed:
                    raise
                pool.read_committed = False  # the role has got another isolation level by default since the handshake
            except psycopg.Error as error:
                if not pool.preparing.gave_up(own, error):
                    raise
            return await _together_async(own, ops, alone=pool.read_committed)

    async def _own_pool(self) -> AsyncOwnPool:
        self._check_open()
        if self._pool is None:
            dsn = await self.dsn()
            self._pool = self._pool or AsyncOwnPool(dsn, self._options)  # another task may have been faster
        return self._pool

    async def close(self) -> None:
        """Close menzil's own connections, and leave the embedded PostgreSQL to other processes that use it."""
        self._closed = True
        if self._pool is not None:
            await self._pool.close()
        await asyncio.to_thread(self._server.leave)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


def _together(own: Conn, ops: Sequence[Op[T]]) -> list[T]:
    with own.transaction():
        return [run(own, op, own=True) for op in ops]


async def _together_async(own: AsyncConn, ops: Sequence[Op[T]], *, alone: bool) -> list[T]:
    """All or none; `alone` says that one statement needs no transaction around it."""
    if len(ops) == 1 and alone:
        return [await run_async(own, ops[0], own=True)]
    async with own.transaction():
        return [await run_async(own, op, own=True) for op in ops]


def _commits_each_statement(conn: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    return conn.autocommit and conn.info.transaction_status == TransactionStatus.IDLE
