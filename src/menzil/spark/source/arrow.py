"""One query as Arrow batches. Runs in a task."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from psycopg.conninfo import make_conninfo

from menzil.model.errors import ConnectionFailedError, RefusedError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_HINT = "adbc.postgresql.batch_size_hint_bytes"


def batches(
    dsn: str,
    query: str,
    batch_bytes: int,
    *,
    still_there: int | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[RecordBatch]:
    """Stream the result; never more than a few batches in memory.

    `still_there` is a table that must exist when everything was read: a month that was dropped meanwhile looks empty.
    """
    import adbc_driver_manager
    import adbc_driver_postgresql.dbapi as driver

    try:
        connection = driver.connect(make_conninfo(dsn, fallback_application_name="menzil spark"), autocommit=True)
    except adbc_driver_manager.OperationalError as error:
        raise ConnectionFailedError(f"PostgreSQL cannot be reached: {_sentence(error)}") from None
    with contextlib.closing(connection), connection.cursor() as cursor:
        for name, value in settings.items():
            cursor.execute(f"set {name} = {value}")
        cursor.adbc_statement.set_options(**{_HINT: str(batch_bytes)})
        cursor.execute(query)
        yield from cursor.fetch_record_batch()
        if still_there is not None:
            cursor.execute(f"select 1::integer from pg_class where oid = {still_there}")
            if cursor.fetchone() is None:
                raise RefusedError("A month of the archive was dropped while it was read.", hint="read again")


def _sentence(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]
