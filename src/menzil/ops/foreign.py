"""Ops on connections that are not psycopg's: psycopg2, asyncpg, and any driver below SQLAlchemy.

Each driver reads answers in its own way, and lets its user change that. So the database itself writes every row in
PostgreSQL's binary format, as one text, and what reads it here is what reads the answers of our own connections.
Parameters travel as text for the same reason: a driver that encodes jsonb would encode ours a second time.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from itertools import count
from struct import unpack_from
from typing import Any, NoReturn, TypeVar

import psycopg
from psycopg.adapt import AdaptersMap, Transformer
from psycopg.pq import Format

from menzil.model.errors import InvalidValueError, PermissionDeniedError, UsageError, translate_said
from menzil.model.said import Said
from menzil.ops.grants import grant_for
from menzil.ops.loading import read_plainly
from menzil.ops.op import Op, Rows

T = TypeVar("T")
Params = tuple[str | None, ...]

_PLACE = re.compile(r"%([sb%])")


@lru_cache(256)
def statement(text: str, dollars: bool) -> str:
    """The text of an Op for a driver that marks places as $1, or as %s."""
    numbers = count(1)

    def place(found: re.Match[str]) -> str:
        if found[1] == "%":
            return "%" if dollars else "%%"
        mark = f"${next(numbers)}::text" if dollars else "%s::text"
        return f"pg_catalog.decode({mark}, 'hex')" if found[1] == "b" else mark

    written = _PLACE.sub(place, text)
    return f"select pg_catalog.encode(pg_catalog.record_send(o), 'hex') from ({written}) o"


def params(op: Op[Any]) -> Params:
    """The values of an Op as texts; those that are bytes in hexadecimal."""
    return tuple(value.hex() if isinstance(value, bytes) else value for value in op.params)


class _Context:
    """What a Transformer wants to know."""

    connection = None

    def __init__(self) -> None:
        self.adapters = AdaptersMap(psycopg.adapters)


_context = _Context()
read_plainly(_context)


def rows(answers: Iterable[str]) -> Rows:
    """Read rows that the database wrote in its binary format."""
    loader = Transformer(_context).get_loader
    return [_row(bytes.fromhex(answer), loader) for answer in answers]


def _row(raw: bytes, loader: Callable[[int, Format], Any]) -> tuple[Any, ...]:
    (columns,), at = unpack_from("!i", raw), 4
    found: list[Any] = []
    for _ in range(columns):
        oid, length = unpack_from("!Ii", raw, at)
        at += 8
        if length < 0:
            found.append(None)
            continue
        found.append(loader(oid, Format.BINARY).load(raw[at : at + length]))
        at += length
    return tuple(found)


def refused(error: Exception, op: Op[Any]) -> NoReturn:
    """Raise what we call it, or the error as the driver raised it when we have no word for it."""
    if isinstance(error, UnicodeEncodeError):
        character = error.object[error.start : error.end]
        raise InvalidValueError(f"A text holds a character that the database cannot store: {character!r}.") from error
    ours = translate_said(Said.by(error))
    if ours is None:
        raise error
    if isinstance(ours, PermissionDeniedError) and ours.hint == PermissionDeniedError.default_hint:
        ours.hint = grant_for(op.text, None) or ours.hint
    raise ours from error


class Foreign:
    """A sync connection of another driver, in the transaction its owner is in."""

    def __init__(
        self,
        fetch: Callable[[str, Params], Iterable[str]],
        *,
        dollars: bool,
        commits_each: bool,
        do: Callable[[str], Any],
    ) -> None:
        self._fetch = fetch
        self._dollars = dollars
        self._commits_each = commits_each
        self._do = do

    def run(self, op: Op[T]) -> T:
        """Run one Op."""
        try:
            answers = list(self._fetch(statement(op.text, self._dollars), params(op)))
        except Exception as error:
            refused(error, op)
        return op.read(rows(answers))

    def run_all(self, ops: Sequence[Op[T]]) -> list[T]:
        """Run them all or none."""
        if len(ops) < 2 or not self._commits_each:
            return [self.run(op) for op in ops]
        self._do("begin")
        try:
            answers = [self.run(op) for op in ops]
        except BaseException:
            with suppress(Exception):  # a connection that broke has rolled back by itself
                self._do("rollback")
            raise
        self._do("commit")
        return answers


def _demand_utf8(conn: Any) -> None:
    """Refuse a connection that speaks another encoding before a statement runs: answers are read as UTF-8."""
    encoding = getattr(conn, "encoding", None)
    if isinstance(encoding, str) and encoding.upper().replace("-", "") not in ("UTF8", "UNICODE"):
        hint = 'call set_client_encoding("UTF8") on it, or connect with client_encoding=utf8'
        raise UsageError(f"This connection speaks {encoding}, and menzil reads UTF-8.", hint=hint)


def of_psycopg2(conn: Any) -> Foreign:
    """Ops on a connection of psycopg2."""
    _demand_utf8(conn)
    plain = import_module("psycopg2.extensions").cursor  # not the cursor factory that its owner has set

    def do(text: str, given: Params | None = None) -> list[str]:
        with conn.cursor(cursor_factory=plain) as cursor:
            cursor.execute(text, given)
            return [] if cursor.description is None else [row[0] for row in cursor.fetchall()]

    alone = conn.autocommit and conn.get_transaction_status() == 0
    return Foreign(do, dollars=False, commits_each=alone, do=do)


def of_sqlalchemy(conn: Any) -> Foreign:
    """Ops on a SQLAlchemy Connection, by its own means: with asyncpg its first statement begins the transaction."""

    def fetch(text: str, given: Params) -> Iterable[str]:
        return [row[0] for row in conn.exec_driver_sql(text, given)]

    _demand_utf8(conn.connection.dbapi_connection)
    alone = bool(getattr(conn.connection.dbapi_connection, "autocommit", False))
    return Foreign(fetch, dollars=_dollars(conn), commits_each=alone, do=conn.exec_driver_sql)


def _dollars(conn: Any) -> bool:
    return bool(conn.dialect.paramstyle == "numeric_dollar")


class AsyncForeign(ABC):
    """An async connection of another driver, in the transaction its owner is in."""

    @abstractmethod
    async def fetch(self, op: Op[Any]) -> list[str]:
        """The rows of the answer, each as one text."""

    async def run(self, op: Op[T]) -> T:
        """Run one Op."""
        try:
            answers = await self.fetch(op)
        except Exception as error:
            refused(error, op)
        return op.read(rows(answers))

    async def run_all(self, ops: Sequence[Op[T]]) -> list[T]:
        """Run them all or none."""
        return [await self.run(op) for op in ops]


class AsyncPg(AsyncForeign):
    """A connection of asyncpg, bare or from its pool."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    async def fetch(self, op: Op[Any]) -> list[str]:
        return [row[0] for row in await self._conn.fetch(statement(op.text, True), *params(op))]

    async def run_all(self, ops: Sequence[Op[T]]) -> list[T]:
        if len(ops) < 2 or self._conn.is_in_transaction():
            return await super().run_all(ops)
        async with self._conn.transaction():
            return await super().run_all(ops)


class AsyncSqlAlchemy(AsyncForeign):
    """A SQLAlchemy AsyncConnection over any driver but psycopg."""

    def __init__(self, conn: Any, *, commits_each: bool) -> None:
        self._conn = conn
        self._commits_each = commits_each

    async def fetch(self, op: Op[Any]) -> list[str]:
        text = statement(op.text, _dollars(self._conn))
        return [row[0] for row in await self._conn.exec_driver_sql(text, params(op))]

    async def run_all(self, ops: Sequence[Op[T]]) -> list[T]:
        if len(ops) < 2 or not self._commits_each:
            return await super().run_all(ops)
        await self._conn.exec_driver_sql("begin")
        try:
            answers = await super().run_all(ops)
        except BaseException:
            with suppress(Exception):
                await self._conn.exec_driver_sql("rollback")
            raise
        await self._conn.exec_driver_sql("commit")
        return answers
