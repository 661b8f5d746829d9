"""menzil's own connections: opened at the first call, few, autocommit, without any session state.

The first call connects once beside the pool, because a pool that cannot connect only says that it waited too long,
and asks the database whether it fits this client (the handshake).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolClosed, PoolTimeout

from menzil.model.errors import ConnectionFailedError, UsageError
from menzil.ops import connecting
from menzil.ops.connecting import AsyncConn, Conn
from menzil.ops.dsn import server_of
from menzil.ops.op import Op
from menzil.ops.preparing import Preparing

LOGGER = logging.getLogger("menzil.client")

#: A pool that cannot connect tries again after 1, 2, 4 … seconds and for 5 minutes: then it would notice late that the
#: server is back. So it gives up after so many seconds, and the next call begins anew; a call that waits asks again.
RECONNECT, ASK_AGAIN = 8.0, 10.0

# Pools of the parent process after a fork: never used, never closed, so that the parent keeps its sockets.
_inherited: list[object] = []


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How to connect."""

    prepare: bool
    max_size: int
    timeout: float
    #: What bounds the handshake of a sync pool; without it, it waits for as long as an installation holds its lock.
    limits: Op[None] | None = None
    #: Seconds until an attempt to connect gives up, so that the next call begins a new one.
    reconnect: float = RECONNECT

    def __post_init__(self) -> None:
        """Refuse what could never connect now, not at the first call."""
        if type(self.max_size) is not int or self.max_size < 1:
            raise UsageError(f"max_connections is a whole number, 1 or more, not {self.max_size!r}.")
        if self.timeout is None or not self.timeout > 0:
            raise UsageError(f"The timeout must be more than zero seconds, not {self.timeout}.")

    def connect_kwargs(self, dsn: str) -> dict[str, Any]:
        """Return what to connect with besides the caller's DSN; what the DSN says itself stays."""
        return connecting.options(dsn, prepare=self.prepare, fallback_application_name="menzil")

    def pool_kwargs(self, dsn: str) -> dict[str, Any]:
        """Return what both pools are made with."""
        sizes = {"min_size": 0, "max_size": self.max_size, "timeout": self.timeout, "num_workers": 1}
        found = {"conninfo": dsn, "kwargs": self.connect_kwargs(dsn), "open": False, "name": "menzil", **sizes}
        return found | {"reconnect_timeout": self.reconnect}


def _still_there(conn: Conn | AsyncConn) -> None:
    # A server that went away said so and closed the socket: seen by reading what there is, without a round trip.
    # The first read may find the last words, the second finds the end and raises.
    conn.pgconn.consume_input()
    conn.pgconn.consume_input()


def _waits(timeout: float) -> Iterator[float]:
    """How long to wait each time, until the time is over."""
    ends = time.monotonic() + timeout
    yield min(timeout, ASK_AGAIN)
    while (left := ends - time.monotonic()) > 0:
        yield min(left, ASK_AGAIN)


class AllBusyError(ConnectionFailedError):
    """The server answers, and no connection came free in time."""


def _busy(options: PoolOptions) -> AllBusyError:
    sentence = f"All {options.max_size} connections were busy for {options.timeout:g} seconds."
    return AllBusyError(sentence, hint="give Menzil(max_connections=…) more of them")


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
        self.preparing = Preparing(options.prepare, LOGGER.warning)

    @cached_property
    def where(self) -> tuple[str, int | None] | None:
        """Host and port of the server."""
        return server_of(self._dsn)

    def take(self) -> Conn:
        """Lend a connection for one call; who takes it gives it back."""
        pool = self._pool
        if pool is None or self._pid != os.getpid():
            pool = self._open()
        try:
            for patience in _waits(self._options.timeout):
                with suppress(PoolTimeout):
                    return pool.getconn(patience)
            connecting.connect(self._dsn, self._kwargs).close()  # says why, if the server is the reason
            raise _busy(self._options)
        except PoolClosed:
            raise UsageError("This client is closed.") from None

    def give_back(self, conn: Conn) -> None:
        """The call is over; a connection that is not idle is closed."""
        if self._pool is not None:
            self._pool.putconn(conn)

    def _open(self) -> ConnectionPool[Conn]:
        with self._lock:
            if self._pid != os.getpid():
                _inherited.append(self._pool)
                self._pool, self._pid = None, os.getpid()
            if self._pool is None:
                with connecting.connect(self._dsn, self._kwargs) as conn:
                    connecting.configure(conn)
                    self.read_committed = connecting.handshake(conn, "client", self._dsn, self._options.limits)
                kwargs = self._options.pool_kwargs(self._dsn)
                self._pool = ConnectionPool(configure=self._configure, check=_still_there, **kwargs)
                self._pool.open()
            return self._pool

    def _configure(self, conn: Conn) -> None:
        connecting.configure(conn)
        self.preparing.fit(conn)

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
        self.preparing = Preparing(options.prepare, LOGGER.warning)

    @cached_property
    def where(self) -> tuple[str, int | None] | None:
        """Host and port of the server."""
        return server_of(self._dsn)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConn]:
        """Lend a connection for one call."""
        pool = self._pool
        if pool is None:
            pool = await self._open()
        if self._loop is not asyncio.get_running_loop():
            raise UsageError("This AsyncMenzil belongs to another event loop.", hint="make one for each loop")
        try:
            conn = await self._wait(pool)
        except PoolClosed:
            raise UsageError("This client is closed.") from None
        try:
            yield conn
        finally:
            await pool.putconn(conn)

    async def _wait(self, pool: AsyncConnectionPool[AsyncConn]) -> AsyncConn:
        for patience in _waits(self._options.timeout):
            with suppress(PoolTimeout):
                return await pool.getconn(patience)
        tried = await connecting.connect_async(self._dsn, self._kwargs)  # says why, if the server is the reason
        await tried.close()
        raise _busy(self._options)

    async def _open(self) -> AsyncConnectionPool[AsyncConn]:
        async with self._lock:
            if self._pool is None:
                async with await connecting.connect_async(self._dsn, self._kwargs) as conn:
                    await connecting.configure_async(conn)
                    self.read_committed = await connecting.handshake_async(conn, "client", self._dsn)
                kwargs = self._options.pool_kwargs(self._dsn)
                pool: AsyncConnectionPool[AsyncConn] = AsyncConnectionPool(
                    configure=self._configure, check=_still_there_async, **kwargs
                )
                await pool.open()
                self._pool, self._loop = pool, asyncio.get_running_loop()
            return self._pool

    async def _configure(self, conn: AsyncConn) -> None:
        await connecting.configure_async(conn)
        self.preparing.fit(conn)

    async def close(self) -> None:
        """Close every connection."""
        if self._pool is not None and self._loop is asyncio.get_running_loop():
            await self._pool.close()


async def _still_there_async(conn: AsyncConn) -> None:
    _still_there(conn)
