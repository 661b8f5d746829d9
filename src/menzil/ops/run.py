"""The two runners: an Op, a connection, and the answer. One statement, no commit, nothing left behind.

They use a cursor of their own, so row factory, cursor factory and adapters of the connection stay as they are and have
no say in how the answer is read.
"""

from __future__ import annotations

from typing import Any, TypeVar

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.rows import tuple_row
from psycopg.types import array, numeric, string
from psycopg.types import bool as boolean

from menzil.model.errors import InvalidValueError, UsageError, translate
from menzil.ops.direct import direct
from menzil.ops.op import Op, Rows
from menzil.ops.preparing import LOST

T = TypeVar("T")

# jsonb, uuid and timestamptz (and their like) stay bytes: menzil.model.wire decodes them when they are looked at.
_LOADERS = (
    ("bool", boolean.BoolBinaryLoader),
    ("bytea", string.ByteaBinaryLoader),
    ("int4", numeric.Int4BinaryLoader),
    ("int8", numeric.Int8BinaryLoader),
    ("text", string.TextBinaryLoader),
    ("jsonb", string.ByteaBinaryLoader),
    ("timestamptz", string.ByteaBinaryLoader),
    ("uuid", string.ByteaBinaryLoader),
)
_ARRAY_OF_INT8 = psycopg.adapters.types["int8"].array_oid


class _JsonInUtf8(Loader):
    """jsonb from a connection that speaks another encoding: what decodes it later expects UTF-8."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        assert self.connection is not None
        return bytes(data).decode(self.connection.info.encoding).encode()


def _read_plainly_from(conn: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], cursor: AdaptContext) -> None:
    """Set up a cursor on somebody else's connection."""
    read_plainly(cursor)
    if conn.info.encoding not in ("utf-8", "ascii"):
        cursor.adapters.register_loader("jsonb", _JsonInUtf8)


def read_plainly(context: AdaptContext) -> None:
    """Set up how answers are read. On a connection of our own, once; on somebody else's, on each cursor."""
    for name, loader in _LOADERS:
        context.adapters.register_loader(name, loader)
    context.adapters.register_loader(_ARRAY_OF_INT8, array.ArrayBinaryLoader)


def run(conn: psycopg.Connection[Any], op: Op[T], *, own: bool = False) -> T:
    """Run the Op; `own` says that the connection is ours, and that read_plainly was done for all of it."""
    try:
        short = direct(conn) if own else None
        rows = short.ask(op) if short else _ask(conn, op, own)
    except (psycopg.Error, UnicodeEncodeError) as error:
        _raise_in_our_words(error, own)
        raise
    return op.read(rows)


def _ask(conn: psycopg.Connection[Any], op: Op[Any], own: bool) -> Rows:
    with psycopg.Cursor(conn, row_factory=tuple_row) as cursor:
        if not own:
            _read_plainly_from(conn, cursor)
        return cursor.execute(op.text, op.params, binary=True).fetchall()


async def run_async(conn: psycopg.AsyncConnection[Any], op: Op[T], *, own: bool = False) -> T:
    """Run the Op; `own` says that read_plainly was done for the whole connection."""
    try:
        async with psycopg.AsyncCursor(conn, row_factory=tuple_row) as cursor:
            if not own:
                _read_plainly_from(conn, cursor)
            await cursor.execute(op.text, op.params, binary=True)
            rows = await cursor.fetchall()
    except (psycopg.Error, UnicodeEncodeError) as error:
        _raise_in_our_words(error, own)
        raise
    return op.read(rows)


def _raise_in_our_words(error: psycopg.Error | UnicodeEncodeError, own: bool) -> None:
    """Raise what we call it; nothing happens when we have no word for it."""
    if isinstance(error, UnicodeEncodeError):
        character = error.object[error.start : error.end]
        raise InvalidValueError(f"A text holds a character that the database cannot store: {character!r}.") from error
    if not own and isinstance(error, LOST):
        sentence = "The server lost a statement that this connection had prepared."
        hint = "behind a PgBouncer before 1.21, connect with prepare_threshold=None"
        raise UsageError(sentence, sqlstate=error.sqlstate, hint=hint) from error
    ours = translate(error)
    if ours is not None:
        raise ours from error
