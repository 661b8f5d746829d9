"""The two runners: an Op, a connection, and the answer. One statement, no commit, nothing left behind.

They use a cursor of their own, so row factory, cursor factory and adapters of the connection stay as they are and have
no say in how the answer is read.
"""

from __future__ import annotations

from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row

from menzil.model.errors import InvalidValueError, PermissionDeniedError, UsageError, translate
from menzil.ops.direct import direct
from menzil.ops.grants import grant_for
from menzil.ops.loading import read_plainly_from
from menzil.ops.op import Op, Rows
from menzil.ops.preparing import LOST

T = TypeVar("T")


def run(conn: psycopg.Connection[Any], op: Op[T], *, own: bool = False) -> T:
    """Run the Op; `own` says that the connection is ours, and that read_plainly was done for all of it."""
    try:
        short = direct(conn) if own else None
        rows = short.ask(op) if short else _ask(conn, op, own)
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise_in_our_words(error, op, conn, own)
        raise
    return op.read(rows)


def _ask(conn: psycopg.Connection[Any], op: Op[Any], own: bool) -> Rows:
    with psycopg.Cursor(conn, row_factory=tuple_row) as cursor:
        if not own:
            read_plainly_from(conn, cursor)
        return cursor.execute(op.text, op.params, binary=True).fetchall()


async def run_async(conn: psycopg.AsyncConnection[Any], op: Op[T], *, own: bool = False) -> T:
    """Run the Op; `own` says that read_plainly was done for the whole connection."""
    try:
        async with psycopg.AsyncCursor(conn, row_factory=tuple_row) as cursor:
            if not own:
                read_plainly_from(conn, cursor)
            await cursor.execute(op.text, op.params, binary=True)
            rows = await cursor.fetchall()
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise_in_our_words(error, op, conn, own)
        raise
    return op.read(rows)


def raise_in_our_words(
    error: psycopg.Error | UnicodeEncodeError,
    op: Op[Any],
    conn: psycopg.Connection[Any] | psycopg.AsyncConnection[Any],
    own: bool,
) -> None:
    """Raise what we call it; nothing happens when we have no word for it."""
    if isinstance(error, UnicodeEncodeError):
        character = error.object[error.start : error.end]
        raise InvalidValueError(f"A text holds a character that the database cannot store: {character!r}.") from error
    if not own and isinstance(error, LOST):
        sentence = "The server lost a statement that this connection had prepared."
        hint = "behind a PgBouncer before 1.21, connect with prepare_threshold=None"
        raise UsageError(sentence, sqlstate=error.sqlstate, hint=hint) from error
    ours = translate(error)
    if isinstance(ours, PermissionDeniedError) and ours.hint == PermissionDeniedError.default_hint:
        ours.hint = grant_for(op.text, None if conn.closed else conn.info.user) or ours.hint
    if ours is not None:
        raise ours from error
