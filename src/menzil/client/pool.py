"""menzil's own connections: opened at the first call, few, autocommit, without any session state.

The first call connects once beside the pool, because a pool that cannot connect only says that it waited too long,
and asks the database whether it fits this client (the handshake).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolClosed, PoolTimeout

from menzil.client.handshake import check
from menzil.model.errors import ConnectionFailedError, UsageError, translate
from menzil.ops import upkeep
from menzil.ops.run import read_plainly, run, run_async

Conn = psycopg.Connection[Any]
AsyncConn = psycopg.AsyncConnection[Any]

# Pools of the parent process after a fork: never used, never closed, so that the parent keeps its sockets.
_inherited: list[object] = []


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How to connect."""

    prepare: bool
    max_size: int
    timeout: float

    def connect_kwargs(self, dsn: str) -> dict[str, Any]:
        """Return what menzil adds to the caller's DSN: nothing a pooler in transaction mode would mind."""
        try:
            given = conninfo_to_dict(dsn)
        except psycopg.Error:
            # The original error repeats the DSN, and with it the password.
            hint = 'write it like "postgresql://user@host/database"'
            raise UsageError("The DSN is not a connection string PostgreSQL understands.", hint=hint) from None
        added = {"client_encoding": "utf8", "fallback_application_name": "menzil", "connect_timeout": 10}
        own = {name: value for name, value in added.items() if name not in given}
        return own | {"autocommit": True, "prepare_threshold": 5 if self.prepare else None}

    def pool_kwargs(self, dsn: str) -> dict[str, Any]:
        """Return what both pools are made with."""
        sizes = {"min_size": 0, "max_size": self.max_size, "timeout": self.timeout, "num_workers": 1}
        return {"conninfo": dsn, "kwargs": self.connect_kwargs(dsn), "open": False, "name": "menzil", **sizes}


def _configure(conn: Conn) -> None:
    read_plainly(conn)
    # Said in BEGIN where there is one; nothing is set in the session.
    conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED


def _still_there(conn: Conn | AsyncConn) -> None:
    # A server that went away said so and closed the socket: seen by reading what there is, without a round trip.
    # The first read may find the last words, the second finds the end and raises.
    conn.pgconn.consume_input()
    conn.pgconn.consume_input()


def _failed(error: psycopg.Error) -> Exception:
    return translate(error) or error


def _busy(options: PoolOptions) -> ConnectionFailedError:
    sentence = f"All {options.max_size} connections were busy for {options.timeout:g} seconds."
    return ConnectionFailedError(sentence, hint="give Menzil(max_connections=…) more of them")


class OwnPool:
    """Connections for the sync client."""

    def __init__(self, dsn: str, options: PoolOptions) -> None:
        self._dsn = dsn
        self._options = options
        self._kwargs = options.connect_kwargs(dsn)
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Conn] | None = None
        self._pid = os.getpid()
        self.read_committed = True

    @contextmanager
    def connection(self) -> Iterator[Conn]:
        """Lend a connection for one call."""
        pool = self._pool
        if pool is None or self._pid != os.getpid():
            pool = self._open()
        try:
            conn = pool.getconn()
        except PoolTimeout:
            self._connect().close()  # says why, if the server is the reason
            raise _busy(self._options) from None
        except PoolClosed:
            raise UsageError("This client is closed.") from None
        try:
            yield conn
        finally:
            pool.putconn(conn)

    def _open(self) -> ConnectionPool[Conn]:
        with self._lock:
            if self._pid != os.getpid():
                _inherited.append(self._pool)
                self._pool, self._pid = None, os.getpid()
            if self._pool is None:
                with self._connect() as conn:
                    _configure(conn)
                    self.read_committed = check(run(conn, upkeep.handshake(), own=True))
                kwargs = self._options.pool_kwargs(self._dsn)
                self._pool = ConnectionPool(configure=_configure, check=_still_there, **kwargs)
                self._pool.open()
            return self._pool

    def _connect(self) -> Conn:
        try:
            return psycopg.connect(self._dsn, **self._kwargs)
        except psycopg.Error as error:
            raise _failed(error) from error

    def close(self) -> None:
        """Close every connection."""
        if self._pool is not None and self._pid == os.getpid():
            self._pool.close()


class AsyncOwnPool:
    """Connections for the async client; they belong to the event loop of the first call."""

    def __init__(self, dsn: str, options: PoolOptions) -> None:
        self._dsn = dsn
        self._options = options
        self._kwargs = options.connect_kwargs(dsn)
        self._lock = asyncio.Lock()
        self._pool: AsyncConnectionPool[AsyncConn] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.read_committed = True

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConn]:
        """Lend a connection for one call."""
        pool = self._pool
        if pool is None:
            pool = await self._open()
        if self._loop is not asyncio.get_running_loop():
            raise UsageError("This AsyncMenzil belongs to another event loop.", hint="make one for each loop")
        try:
            conn = await pool.getconn()
        except PoolTimeout:
            await (await self._connect()).close()  # says why, if the server is the reason
            raise _busy(self._options) from None
        except PoolClosed:
            raise UsageError("This client is closed.") from None
        try:
            yield conn
        finally:
            await pool.putconn(conn)

    async def _open(self) -> AsyncConnectionPool[AsyncConn]:
        async with self._lock:
            if self._pool is None:
                async with await self._connect() as conn:
                    await _configure_async(conn)
                    self.read_committed = check(await run_async(conn, upkeep.handshake(), own=True))
                kwargs = self._options.pool_kwargs(self._dsn)
                pool: AsyncConnectionPool[AsyncConn] = AsyncConnectionPool(
                    configure=_configure_async, check=_still_there_async, **kwargs
                )
                await pool.open()
                self._pool, self._loop = pool, asyncio.get_running_loop()
            return self._pool

    async def _connect(self) -> AsyncConn:
        try:
            return await psycopg.AsyncConnection.connect(self._dsn, **self._kwargs)
        except psycopg.Error as error:
            raise _failed(error) from error

    async def close(self) -> None:
        """Close every connection."""
        if self._pool is not None and self._loop is asyncio.get_running_loop():
            await self._pool.close()


async def _configure_async(conn: AsyncConn) -> None:
    read_plainly(conn)
    await conn.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)


async def _still_there_async(conn: AsyncConn) -> None:
    _still_there(conn)
