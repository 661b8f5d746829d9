"""The inbox: each message once per consumer, however often it is delivered."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, overload

import psycopg

from menzil.model.errors import UsageError
from menzil.model.options import Leased
from menzil.ops import working
from menzil.ops.run import run, run_async


@overload
def inbox(conn: psycopg.Connection[Any], message: Leased | str, *, consumer: str) -> bool: ...
@overload
def inbox(conn: psycopg.AsyncConnection[Any], message: Leased | str, *, consumer: str) -> Awaitable[bool]: ...


def inbox(
    conn: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], message: Leased | str, *, consumer: str
) -> bool | Awaitable[bool]:
    """Say whether `consumer` sees this message for the first time; awaited on an async connection.

    Runs in your transaction: the mark and what you do for the message commit together. `message` may also be a key of
    your own, such as the number of an order. Remembered for the setting inbox_retention.
    """
    op = working.inbox_claim(consumer, message if isinstance(message, str) else str(message.id))
    if isinstance(conn, psycopg.AsyncConnection):
        return run_async(conn, op)
    if isinstance(conn, psycopg.Connection):
        return run(conn, op)
    raise UsageError(f"The inbox needs a psycopg connection, not {type(conn).__name__}.")
