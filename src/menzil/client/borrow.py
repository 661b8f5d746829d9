"""From what the caller calls a connection to the psycopg connection below it.

SQLAlchemy and Django are recognised by their shape and never imported. Whatever begins a transaction in them when a
statement is executed is begun here too: otherwise their commit would not know that there is something to commit.
"""

from __future__ import annotations

from enum import Enum
from inspect import iscoroutinefunction
from typing import Any, Protocol

import psycopg

from menzil.model.errors import UsageError


class HasConnection(Protocol):
    """A SQLAlchemy Session or Connection, sync or async, or Django's connection."""

    @property
    def connection(self) -> Any: ...


Borrowed = psycopg.Connection[Any] | HasConnection
AsyncBorrowed = psycopg.AsyncConnection[Any] | HasConnection


class _Shape(Enum):
    DJANGO = "Django's connection"
    SESSION = "a SQLAlchemy Session"
    CONNECTION = "a SQLAlchemy Connection"
    ASYNC_SESSION = "a SQLAlchemy AsyncSession"
    ASYNC_CONNECTION = "a SQLAlchemy AsyncConnection"


def _shape(conn: object) -> _Shape | None:
    if hasattr(conn, "ensure_connection"):
        return _Shape.DJANGO
    # The class is looked at, not the object: some of these properties do things, or raise.
    kind: Any = type(conn)
    if hasattr(kind, "get_raw_connection"):
        return _Shape.ASYNC_CONNECTION
    if not hasattr(kind, "connection") or not (hasattr(kind, "in_transaction") or hasattr(kind, "get_bind")):
        return None
    if iscoroutinefunction(kind.connection):
        return _Shape.ASYNC_SESSION
    return _Shape.SESSION if callable(kind.connection) else _Shape.CONNECTION


def borrow(conn: Borrowed) -> psycopg.Connection[Any]:
    """Return the psycopg connection inside `conn`, in the transaction its owner is in."""
    if isinstance(conn, psycopg.Connection):
        return conn
    found: Any = conn
    match _shape(conn):
        case _Shape.DJANGO:
            found = _from_django(found)
        case _Shape.SESSION:
            found = _from_sqlalchemy(found.connection())  # this begins the transaction of the session
        case _Shape.CONNECTION:
            found = _from_sqlalchemy(found)
        case _Shape.ASYNC_SESSION | _Shape.ASYNC_CONNECTION:
            raise UsageError("This connection is async.", hint="use menzil.AsyncMenzil")
        case None:
            pass
    if isinstance(found, psycopg.Connection):
        return found
    if isinstance(found, psycopg.AsyncConnection):
        raise UsageError("This connection is async.", hint="use menzil.AsyncMenzil")
    raise _refusal(found)


async def borrow_async(conn: AsyncBorrowed) -> psycopg.AsyncConnection[Any]:
    """Return the psycopg connection inside `conn`, in the transaction its owner is in."""
    if isinstance(conn, psycopg.AsyncConnection):
        return conn
    found: Any = conn
    match _shape(conn):
        case _Shape.ASYNC_SESSION:
            found = await _from_async_sqlalchemy(await found.connection())
        case _Shape.ASYNC_CONNECTION:
            found = await _from_async_sqlalchemy(found)
        case None if not isinstance(conn, psycopg.Connection):
            pass
        case _:
            raise UsageError("This connection is not async.", hint="use menzil.Menzil, or an async connection")
    if isinstance(found, psycopg.AsyncConnection):
        return found
    raise _refusal(found)


def _from_django(wrapper: Any) -> Any:
    if wrapper.vendor != "postgresql":
        raise UsageError(f"This Django connection speaks to {wrapper.vendor}, not to PostgreSQL.")
    # What Django's own cursors do first: connect if needed, refuse inside an atomic block that is already broken.
    wrapper.ensure_connection()
    wrapper.validate_no_broken_transaction()
    return wrapper.connection


def _from_sqlalchemy(conn: Any) -> Any:
    if not conn.in_transaction():
        conn.begin()
    return conn.connection.driver_connection


async def _from_async_sqlalchemy(conn: Any) -> Any:
    if not conn.in_transaction():
        await conn.begin()
    return (await conn.get_raw_connection()).driver_connection


def _refusal(conn: object) -> UsageError:
    """Say what is wrong with a connection we cannot use."""
    kind = f"{type(conn).__module__}.{type(conn).__qualname__}"
    if isinstance(conn, psycopg.Cursor | psycopg.AsyncCursor):
        return UsageError("This is a cursor, not a connection.", hint="give its connection")
    if kind.startswith(("psycopg2", "asyncpg", "pg8000")):
        return UsageError(f"menzil cannot use a connection of {kind}.", hint="menzil needs psycopg 3")
    hint = "give a psycopg connection, a SQLAlchemy Session or Connection, or Django's connection"
    return UsageError(f"menzil cannot use a {kind} as a connection.", hint=hint)
