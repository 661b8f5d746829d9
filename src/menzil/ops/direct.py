"""The short way to the server: an Op through libpq itself, on a connection of our own.

A cursor is made for all kinds of queries; for a statement as small as a send it costs several times what the rest of
the client does. What an Op is, a text with casts and a few values, needs none of that. A worker that was woken has the
same short way in its event loop.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import select
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.adapt import AdaptersMap, Transformer
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGresult

from menzil.ops.op import Op, Rows

#: At most so many statements are prepared on a connection.
PREPARED = 100

_PLACE = re.compile(r"%([sb%])")
_known: WeakKeyDictionary[psycopg.Connection[Any], Direct | None] = WeakKeyDictionary()
_known_async: WeakKeyDictionary[psycopg.AsyncConnection[Any], AsyncDirect] = WeakKeyDictionary()
#: Seconds for the server to end a statement whose caller was cancelled.
PATIENCE = 5.0


def direct(conn: psycopg.Connection[Any]) -> Direct | None:
    """The short way on this connection, where the system can poll. Texts travel as UTF-8, which all of ours speak."""
    try:
        return _known[conn]
    except KeyError:
        return _known.setdefault(conn, Direct(conn) if hasattr(select, "poll") else None)


def direct_async(conn: psycopg.AsyncConnection[Any]) -> AsyncDirect:
    """The same for a connection that one task at a time uses, and that is not in pipeline mode."""
    try:
        return _known_async[conn]
    except KeyError:
        return _known_async.setdefault(conn, AsyncDirect(conn))


def prepare_no_more(conn: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Let the short way on this connection, if it was taken before, run every statement as a text."""
    known = _known.get(conn) if isinstance(conn, psycopg.Connection) else _known_async.get(conn)
    if known is not None:
        known.prepare_no_more()


@lru_cache(256)
def _statement(text: str) -> tuple[bytes, tuple[int, ...]]:
    """The text with numbered places, and the format of the value of each."""
    kinds = [kind for kind in _PLACE.findall(text) if kind != "%"]
    numbers = iter(range(1, len(kinds) + 1))
    written = _PLACE.sub(lambda found: "%" if found[1] == "%" else f"${next(numbers)}", text)
    return written.encode(), tuple(Format.BINARY if kind == "b" else Format.TEXT for kind in kinds)


@dataclass(frozen=True)
class _Adapters:
    """What a Transformer wants to know."""

    adapters: AdaptersMap
    connection: None = None


class _Short:
    """What both ways share: statements on one connection, and what their answers hold."""

    def __init__(self, conn: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        self._pg = conn.pgconn
        self._threshold = conn.prepare_threshold
        self._uses: dict[str, int] = {}
        self._names: dict[str, bytes] = {}
        self._prefix = f"menzil_{secrets.token_hex(8)}".encode()  # of this connection alone: see preparing.py
        # Of the adapters, not of the connection: who keeps that would keep it in memory after the pool has closed it.
        self._transformer = Transformer(_Adapters(conn.adapters))

    def prepare_no_more(self) -> None:
        """Run every statement as a text from now on."""
        self._threshold = None
        self._names.clear()

    def _params(self, op: Op[Any]) -> list[bytes | None]:
        params = [value.encode() if isinstance(value, str) else value for value in op.params]
        for value, form in zip(params, _statement(op.text)[1], strict=True):
            if value is not None and form == Format.TEXT and b"\0" in value:
                raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return params

    def _to_prepare(self, key: str) -> bytes | None:
        """The name to prepare the statement by, now that it is used often."""
        uses = self._uses[key] = self._uses.get(key, 0) + 1
        if self._threshold is None or uses < self._threshold or len(self._names) >= PREPARED:
            return None
        return b"%b_%d" % (self._prefix, len(self._names))

    def _send(self, op: Op[Any], params: list[bytes | None]) -> None:
        text, formats = _statement(op.text)
        name = self._names.get(op.text)
        if name:
            self._pg.send_query_prepared(name, params, formats, Format.BINARY)
        else:
            self._pg.send_query_params(text, params, None, formats, Format.BINARY)

    def _rows(self, result: PGresult) -> Rows:
        self._transformer.set_pgresult(result)
        rows = self._transformer.load_rows(0, result.ntuples, tuple)
        self._transformer.set_pgresult(None)  # a large answer is not kept until the next call
        return rows

    def _take(self, answer: PGresult | None) -> tuple[PGresult | None, bool]:
        """What the answer is after the next result that has arrived, and whether there is no more."""
        found = self._pg.get_result()
        if found is None:
            return answer, True
        return answer if answer is not None and answer.status == ExecStatus.FATAL_ERROR else found, False

    def _judged(self, answer: PGresult | None) -> PGresult:
        if answer is None or self._pg.status == ConnStatus.BAD:
            raise psycopg.OperationalError(self._pg.get_error_message())
        if answer.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(answer)
        return answer


class Direct(_Short):
    """One connection, lent to one thread at a time."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        super().__init__(conn)
        self._poll = select.poll()
        self._poll.register(self._pg.socket, select.POLLIN)

    def ask(self, op: Op[Any]) -> Rows:
        """Run the Op and return the rows, not read yet."""
        params = self._params(op)
        if op.text not in self._names and (name := self._to_prepare(op.text)):
            self._pg.send_prepare(name, _statement(op.text)[0])
            self._result()
            self._names[op.text] = name
        self._send(op, params)
        return self._rows(self._result())

    def _result(self) -> PGresult:
        """Wait for the answer to what was sent. After an interrupt the connection is busy: the pool drops it."""
        while self._pg.flush():
            self._poll.modify(self._pg.socket, select.POLLIN | select.POLLOUT)
            self._poll.poll()
            self._poll.modify(self._pg.socket, select.POLLIN)
            self._pg.consume_input()  # a server that tells us something first does not read on
        answer: PGresult | None = None
        over = False
        while not over:
            while self._pg.is_busy():
                self._poll.poll()
                self._pg.consume_input()
            answer, over = self._take(answer)
        return self._judged(answer)


class AsyncDirect(_Short):
    """One connection of an event loop, used by one task at a time."""

    async def ask(self, conn: psycopg.AsyncConnection[Any], op: Op[Any]) -> Rows:
        """Run the Op and return the rows, not read yet. A task that is cancelled has the server end its statement."""
        params = self._params(op)
        try:
            if op.text not in self._names and (name := self._to_prepare(op.text)):
                self._pg.send_prepare(name, _statement(op.text)[0])
                await self._result()
                self._names[op.text] = name
            self._send(op, params)
            return self._rows(await self._result())
        except asyncio.CancelledError:
            with suppress(psycopg.Error, TimeoutError):
                await conn.cancel_safe(timeout=PATIENCE)
                async with asyncio.timeout(PATIENCE):
                    await self._result()
            raise

    async def _result(self) -> PGresult:
        """Wait for the answer to what was sent."""
        pg, loop = self._pg, asyncio.get_running_loop()
        while pg.flush():
            await self._ready(loop, writes=True)
            pg.consume_input()  # a server that tells us something first does not read on
        answer: PGresult | None = None
        over = False
        while not over:
            while pg.is_busy():
                await self._ready(loop)
                pg.consume_input()
            answer, over = self._take(answer)
        return self._judged(answer)

    async def _ready(self, loop: asyncio.AbstractEventLoop, *, writes: bool = False) -> None:
        """Wait until the socket can be read, or written."""
        ready, socket = loop.create_future(), self._pg.socket

        def tell() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(socket, tell)
        try:
            if writes:
                loop.add_writer(socket, tell)
            await ready
        finally:
            loop.remove_reader(socket)
            if writes:
                loop.remove_writer(socket)
