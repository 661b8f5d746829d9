"""The database as a bridge uses it: one connection, opened when it is needed and again when the server went away."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TypeVar

import psycopg

from menzil.model.errors import READ_ONLY, ConnectionFailedError, MenzilError, translate
from menzil.ops import connecting
from menzil.ops.op import Op
from menzil.ops.run import run_async

T = TypeVar("T")

# A server that vanished without a word is noticed within half a minute.
_ADDED = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}


class Desk:
    """A connection that comes back. Tasks share it: what one of them runs is over before the next begins."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._conn: connecting.AsyncConn | None = None
        self._turn = asyncio.Lock()
        self._read_committed = True

    async def run(self, op: Op[T]) -> T:
        """Run one Op in a transaction of its own; it is committed when this returns.

        Raises ConnectionFailedError when the connection broke: then it is not known whether it was committed.
        """
        async with self._turn:
            conn = await self._connected()
            try:
                if self._read_committed:
                    return await run_async(conn, op, own=True)
                async with conn.transaction():
                    return await run_async(conn, op, own=True)
            except (MenzilError, psycopg.Error) as error:
                ours = error if isinstance(error, MenzilError) else translate(error)
                if conn.closed or conn.broken or isinstance(ours, ConnectionFailedError) or error.sqlstate == READ_ONLY:
                    await self._drop()
                    raise ConnectionFailedError(str(ours or error).strip(), sqlstate=error.sqlstate) from error
                if ours is None:  # a deadlock, a timeout, a full disk: nothing was committed
                    sentence = f"The database could not: {error.diag.message_primary or error}."  # type: ignore[union-attr]
                    raise MenzilError(sentence, sqlstate=error.sqlstate) from error
                raise
            except BaseException:
                await self._drop()  # cancelled in the middle: the connection has an answer under way
                raise

    async def _connected(self) -> connecting.AsyncConn:
        if self._conn is not None and not self._conn.closed:
            return self._conn
        given = connecting.options(self._dsn, prepare=False, fallback_application_name="menzil bridge", **_ADDED)
        conn = await connecting.connect_async(self._dsn, given)
        try:
            await connecting.configure_async(conn)
            self._read_committed = await connecting.handshake_async(conn, "worker", self._dsn)
        except BaseException:
            await conn.close()
            raise
        self._conn = conn
        return conn

    async def _drop(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            with suppress(Exception):
                await conn.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._drop()
