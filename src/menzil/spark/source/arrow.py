"""Queries as Arrow batches. Runs in a task."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from psycopg.conninfo import make_conninfo

from menzil.model.errors import ConnectionFailedError, RefusedError
from menzil.ops.dsn import explained

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table

_HINT = "adbc.postgresql.batch_size_hint_bytes"


class Source:
    """One connection, on which one query is streamed at a time."""

    def __init__(self, cursor: Any, batch_bytes: int) -> None:
        self._cursor = cursor
        self._batch_bytes = batch_bytes

    def batches(self, query: str, share: float = 1.0) -> Iterator[RecordBatch]:
        """The result, never more than a few batches of it in memory; `share` makes them smaller."""
        self._cursor.adbc_statement.set_options(**{_HINT: str(int(self._batch_bytes * share))})
        self._cursor.execute(query)
        yield from self._cursor.fetch_record_batch()

    def table(self, query: str) -> Table:
        """The whole result, of a query that has few rows."""
        self._cursor.execute(query)
        found: Table = self._cursor.fetch_arrow_table()
        return found

    def one(self, query: str) -> Any:
        """The first value of the first row; None when there is none."""
        self._cursor.execute(query)
        row = self._cursor.fetchone()
        return None if row is None else row[0]

    def must_still_have(self, oid: int) -> None:
        """Fail when this table is gone: a month that was dropped while it was read looks empty."""
        if self.one(f"select 1::integer from pg_class where oid = {oid}") is None:
            raise RefusedError("A month of the archive was dropped while it was read.", hint="read again")


@lru_cache(4)
def _database(conninfo: str) -> Any:
    """What the driver knows of a database; no connection stays open.

    It asks the catalog for all types, which takes longer than a small query. The process of a task is used again, and
    the types that queries of ours return are those of PostgreSQL itself, which never change.
    """
    import adbc_driver_postgresql

    return adbc_driver_postgresql.connect(conninfo)


class _Kept:
    """In the place of a database that a connection would close together with itself."""

    def close(self) -> None:
        """The next task wants it."""


def connected(dsn: str, *, autocommit: bool) -> Any:
    """A connection of the driver for Arrow; the caller closes it."""
    import adbc_driver_manager
    from adbc_driver_manager.dbapi import Connection

    try:
        database = _database(make_conninfo(dsn, fallback_application_name="menzil spark"))
        kept: Any = _Kept()
        return Connection(kept, adbc_driver_manager.AdbcConnection(database), autocommit=autocommit)
    except adbc_driver_manager.OperationalError as error:
        raise explained(ConnectionFailedError(f"PostgreSQL cannot be reached: {_sentence(error)}"), dsn) from None


@contextlib.contextmanager
def opened(dsn: str, batch_bytes: int, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[Source]:
    """A connection for as long as the block lasts."""
    with contextlib.closing(connected(dsn, autocommit=True)) as connection, connection.cursor() as cursor:
        for name, value in settings.items():
            cursor.execute(f"set {name} = {value}")
        yield Source(cursor, batch_bytes)


def _sentence(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]
