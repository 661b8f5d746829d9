"""The inbox: each message once per consumer, however often it is delivered."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, overload

import psycopg

from menzil.model.options import Leased
from menzil.ops import working
from menzil.ops.borrow import AsyncpgConnection, Psycopg2Connection, is_async, run_on, run_on_async


# HasConnection would fit psycopg's connections as well, and a checker that cannot choose answers Any.
class _SqlAlchemy(Protocol):
    def in_transaction(self) -> bool: ...


class _Session(Protocol):
    def get_bind(self, *args: Any, **kwargs: Any) -> Any: ...


class _Django(Protocol):
    def ensure_connection(self) -> Any: ...


@overload
def inbox(conn: psycopg.Connection[Any] | Psycopg2Connection, message: Leased | str, *, consumer: str) -> bool: ...
@overload
def inbox(
    conn: psycopg.AsyncConnection[Any] | AsyncpgConnection, message: Leased | str, *, consumer: str
) -> Awaitable[bool]: ...
@overload
def inbox(conn: _SqlAlchemy | _Session | _Django, message: Leased | str, *, consumer: str) -> Any: ...


def inbox(conn: Any, message: Leased | str, *, consumer: str) -> bool | Awaitable[bool]:
    """Say whether `consumer` sees this message for the first time; awaited on an async connection.

    Takes each connection that `send` takes and runs in its transaction: the mark and what you do for the message commit
    together. `message` may also be a key of your own, such as the number of an order. Remembered for the setting
    inbox_retention.
    """
    op = working.inbox_claim(consumer, message if isinstance(message, str) else str(message.id))
    return run_on_async(conn, op) if is_async(conn) else run_on(conn, op)
