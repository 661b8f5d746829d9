"""The short way to the server: an Op through libpq itself, on a connection of our own.

A cursor is made for all kinds of queries; for a statement as small as a send it costs several times what the rest of
the client does. What an Op is, a text with casts and a few values, needs none of that.
"""

from __future__ import annotations

import os
import re
import select
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


def direct(conn: psycopg.Connection[Any]) -> Direct | None:
    """The short way on this connection, where the system can poll. Texts travel as UTF-8, which all of ours speak."""
    try:
        return _known[conn]
    except KeyError:
        return _known.setdefault(conn, Direct(conn) if hasattr(select, "poll") else None)


def prepare_no_more(conn: psycopg.Connection[Any]) -> None:
    """Let the short way on this connection, if it was taken before, run every statement as a text."""
    known = _known.get(conn)
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


class Direct:
    """One connection, lent to one thread at a time."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._pg = conn.pgconn
        self._threshold = conn.prepare_threshold
        self._uses: dict[str, int] = {}
        self._names: dict[str, bytes] = {}
        self._prefix = f"menzil_{os.urandom(8).hex()}".encode()  # of this connection alone: see preparing.py
        # Of the adapters, not of the connection: who keeps that would keep it in memory after the pool has closed it.
        self._transformer = Transformer(_Adapters(conn.adapters))
        self._poll = select.poll()
        self._poll.register(self._pg.socket, select.POLLIN)

    def ask(self, op: Op[Any]) -> Rows:
        """Run the Op and return the rows, not read yet."""
        text, formats = _statement(op.text)
        params = [value.encode() if isinstance(value, str) else value for value in op.params]
        for value, form in zip(params, formats, strict=True):
            if value is not None and form == Format.TEXT and b"\0" in value:
                raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        name = self._names.get(op.text) or self._prepare(op.text, text)
        if name:
            self._pg.send_query_prepared(name, params, formats, Format.BINARY)
        else:
            self._pg.send_query_params(text, params, None, formats, Format.BINARY)
        result = self._result()
        self._transformer.set_pgresult(result)
        rows = self._transformer.load_rows(0, result.ntuples, tuple)
        self._transformer.set_pgresult(None)  # a large answer is not kept until the next call
        return rows

    def _prepare(self, key: str, text: bytes) -> bytes | None:
        """The name of the statement, once it is used often."""
        uses = self._uses[key] = self._uses.get(key, 0) + 1
        if self._threshold is None or uses < self._threshold or len(self._names) >= PREPARED:
            return None
        name = b"%b_%d" % (self._prefix, len(self._names))
        self._pg.send_prepare(name, text)
        self._result()
        self._names[key] = name
        return name

    def prepare_no_more(self) -> None:
        """Run every statement as a text from now on."""
        self._threshold = None
        self._names.clear()

    def _result(self) -> PGresult:
        """Wait for the answer to what was sent. After an interrupt the connection is busy: the pool drops it."""
        while self._pg.flush():
            self._poll.modify(self._pg.socket, select.POLLIN | select.POLLOUT)
            self._poll.poll()
            self._poll.modify(self._pg.socket, select.POLLIN)
            self._pg.consume_input()  # a server that tells us something first does not read on
        answer: PGresult | None = None
        while True:
            while self._pg.is_busy():
                self._poll.poll()
                self._pg.consume_input()
            found = self._pg.get_result()
            if found is None:
                break
            answer = answer if answer is not None and answer.status == ExecStatus.FATAL_ERROR else found
        if answer is None or self._pg.status == ConnStatus.BAD:
            raise psycopg.OperationalError(self._pg.get_error_message())
        if answer.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(answer)
        return answer
