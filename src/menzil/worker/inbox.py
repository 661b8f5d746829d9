"""The inbox: each message once per consumer, however often it is delivered."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, overload

import psycopg

from menzil.model.options import Leased
from menzil.ops import working
from menzil.ops.borrow import (
    AsyncpgConnection,
    DjangoConnection,
    Psycopg2Connection,
    SqlAlchemy,
    is_async,
    run_on,
    run_on_async,
)


@overload
def inbox(conn: psycopg.Connection[Any] | Psycopg2Connection, message: Leased | str, *, consumer: str) -> bool: ...
@overload
def inbox(
    conn: psycopg.AsyncConnection[Any] | AsyncpgConnection, message: Leased | str, *, consumer: str
) -> Awaitable[bool]: ...
@overload
def inbox(conn: SqlAlchemy | DjangoConnection, message: Leased | str, *, consumer: str) -> Any: ...


def inbox(conn: Any, message: Leased | str, *, consumer: str) -> bool | Awaitable[bool]:
    """Say whether `consumer` sees this message for the first time; awaited on an async connection.

    Takes each connection that `send` takes and runs in its transaction: the mark and what you do for the message commit
    together. `message` may also be a key of your own, such as the number of an order. Remembered for the setting
    inbox_retention.
    """
    op = working.inbox_claim(consumer, message if isinstance(message, str) else str(message.id))
    return run_on_async(conn, op) if is_async(conn) else run_on(conn, op)
