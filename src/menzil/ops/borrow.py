"""From what the caller calls a connection to what runs an Op on it.

A psycopg connection, alone or below SQLAlchemy or Django, is used as it is; others through ops/foreign.py. SQLAlchemy,
Django, psycopg2 and asyncpg are recognised by their shape and never imported. What begins a transaction in them when
a statement is executed is begun here too: otherwise their commit would not know that there is something to commit.
"""

from __future__ import annotations

from collections.abc import Awaitable
from enum import Enum
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeVar

import psycopg

from menzil.model.errors import UsageError
from menzil.ops.foreign import AsyncForeign, AsyncPg, AsyncSqlAlchemy, Foreign, of_psycopg2, of_sqlalchemy
from menzil.ops.op import Op
from menzil.ops.run import run, run_async

T = TypeVar("T")


# Psycopg's connections have `connection` too. The second method lets a type checker tell them from these, and so refuse
# a sync connection in an async client.
class SqlAlchemySession(Protocol):
    """A Session of SQLAlchemy, sync or async, or scoped."""

    @property
    def connection(self) -> Any: ...
    def get_bind(self, *args: Any, **kwargs: Any) -> Any: ...


class SqlAlchemyConnection(Protocol):
    """A Connection of SQLAlchemy, sync or async."""

    @property
    def connection(self) -> Any: ...
    def in_transaction(self) -> bool: ...


class DjangoConnection(Protocol):
    """Django's connection."""

    @property
    def connection(self) -> Any: ...
    def ensure_connection(self) -> None: ...


class Psycopg2Connection(Protocol):
    """A connection of psycopg2."""

    def get_transaction_status(self) -> int: ...
    def cursor(self, *args: Any, **kwargs: Any) -> Any: ...


class AsyncpgConnection(Protocol):
    """A connection of asyncpg, bare or from its pool."""

    def is_in_transaction(self) -> bool: ...
    def fetch(self, query: str, *args: Any) -> Awaitable[Any]: ...


SqlAlchemy = SqlAlchemySession | SqlAlchemyConnection
Borrowed = psycopg.Connection[Any] | SqlAlchemy | DjangoConnection | Psycopg2Connection
AsyncBorrowed = psycopg.AsyncConnection[Any] | SqlAlchemy | AsyncpgConnection


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


def run_on(conn: Borrowed, op: Op[T]) -> T:
    """Run an Op on the caller's connection, in the caller's transaction."""
    theirs = borrow(conn)
    return theirs.run(op) if isinstance(theirs, Foreign) else run(theirs, op)


async def run_on_async(conn: AsyncBorrowed, op: Op[T]) -> T:
    """The same on an async connection."""
    theirs = await borrow_async(conn)
    return await theirs.run(op) if isinstance(theirs, AsyncForeign) else await run_async(theirs, op)


def is_async(conn: object) -> bool:
    """Whether what is run on this connection is awaited."""
    if isinstance(conn, psycopg.AsyncConnection) or _shape(conn) in (_Shape.ASYNC_SESSION, _Shape.ASYNC_CONNECTION):
        return True
    return _driver(conn) == "asyncpg"


def borrow(conn: Borrowed) -> psycopg.Connection[Any] | Foreign:
    """Return what runs Ops on `conn`, in the transaction its owner is in."""
    if isinstance(conn, psycopg.Connection):
        return conn
    found: Any = conn
    match _shape(conn):
        case _Shape.DJANGO:
            found = _from_django(found)
        case _Shape.SESSION:
            return _from_sqlalchemy(found.connection())  # this begins the transaction of the session
        case _Shape.CONNECTION:
            return _from_sqlalchemy(found)
        case _Shape.ASYNC_SESSION | _Shape.ASYNC_CONNECTION:
            raise UsageError("This connection is async.", hint="use menzil.AsyncMenzil")
        case None:
            pass
    if isinstance(found, psycopg.Connection):
        return found
    if isinstance(found, psycopg.AsyncConnection) or _driver(found) == "asyncpg":
        raise UsageError("This connection is async.", hint="use menzil.AsyncMenzil")
    if _driver(found) == "psycopg2" and hasattr(found, "get_transaction_status"):
        return of_psycopg2(found)
    raise _refusal(found)


async def borrow_async(conn: AsyncBorrowed) -> psycopg.AsyncConnection[Any] | AsyncForeign:
    """Return what runs Ops on `conn`, in the transaction its owner is in."""
    if isinstance(conn, psycopg.AsyncConnection):
        return conn
    found: Any = conn
    match _shape(conn):
        case _Shape.ASYNC_SESSION:
            return await _from_async_sqlalchemy(await found.connection())
        case _Shape.ASYNC_CONNECTION:
            return await _from_async_sqlalchemy(found)
        case None if not isinstance(conn, psycopg.Connection) and _driver(conn) != "psycopg2":
            pass
        case _:
            raise UsageError("This connection is not async.", hint="use menzil.Menzil, or an async connection")
    if _driver(found) == "asyncpg" and hasattr(found, "is_in_transaction"):
        return AsyncPg(found)
    raise _refusal(found)


def _driver(conn: object) -> str:
    """The package of the driver, also for a class derived from its connection."""
    packages = [base.__module__.partition(".")[0] for base in type(conn).__mro__]
    return next((name for name in packages if name in ("psycopg2", "asyncpg")), packages[0])


def _from_django(wrapper: Any) -> Any:
    if wrapper.vendor != "postgresql":
        raise UsageError(f"This Django connection speaks to {wrapper.vendor}, not to PostgreSQL.")
    # What Django's own cursors do first: connect if needed, refuse inside an atomic block that is already broken.
    wrapper.ensure_connection()
    wrapper.validate_no_broken_transaction()
    return wrapper.connection


def _from_sqlalchemy(conn: Any) -> psycopg.Connection[Any] | Foreign:
    _must_be_postgresql(conn)
    if not conn.in_transaction():
        conn.begin()
    found = conn.connection.driver_connection
    return found if isinstance(found, psycopg.Connection) else of_sqlalchemy(conn)


async def _from_async_sqlalchemy(conn: Any) -> psycopg.AsyncConnection[Any] | AsyncForeign:
    _must_be_postgresql(conn)
    if not conn.in_transaction():
        await conn.begin()
    raw = await conn.get_raw_connection()
    if isinstance(raw.driver_connection, psycopg.AsyncConnection):
        return raw.driver_connection
    return AsyncSqlAlchemy(conn, commits_each=bool(getattr(raw.dbapi_connection, "autocommit", False)))


def _must_be_postgresql(conn: Any) -> None:
    if conn.dialect.name != "postgresql":
        raise UsageError(f"This SQLAlchemy connection speaks to {conn.dialect.name}, not to PostgreSQL.")


def _refusal(conn: object) -> UsageError:
    """Say what is wrong with a connection we cannot use."""
    kind = f"{type(conn).__module__}.{type(conn).__qualname__}"
    if isinstance(conn, psycopg.Cursor | psycopg.AsyncCursor):
        return UsageError("This is a cursor, not a connection.", hint="give its connection")
    if _driver(conn) == "asyncpg" and hasattr(conn, "acquire"):
        return UsageError("This is a pool, not a connection.", hint="acquire a connection of it")
    if kind.startswith("pg8000"):
        return UsageError(f"menzil cannot use a connection of {kind}.", hint="give the SQLAlchemy connection around it")
    hint = "give a psycopg, psycopg2 or asyncpg connection, a SQLAlchemy Session or Connection, or Django's connection"
    return UsageError(f"menzil cannot use a {kind} as a connection.", hint=hint)
