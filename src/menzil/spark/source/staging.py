"""From Arrow batches to rows of a staging table, through COPY. Runs in a task, once per try."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import WriterCommitMessage

from menzil.model.errors import InvalidValueError, RefusedError
from menzil.spark.source.arrow import connected
from menzil.spark.source.columns import Shape
from menzil.spark.source.endpoints import known_endpoints
from menzil.spark.source.json_text import json_text

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch, Schema


@dataclass
class Staged(WriterCommitMessage):
    """What a task tells the driver: only tokens that arrive there are sent."""

    token: str
    count: int
    send_id: str


def stage(dsn: str, table: str, shape: Shape, batches: Iterable[RecordBatch]) -> tuple[str, int]:
    """Copy the batches under a new token, in one transaction, and say which and how many rows.

    A try that fails leaves a token that no commit names, so it need not clean up after itself.
    """
    import adbc_driver_manager
    import pyarrow as pa

    named = next((source.index for source in shape.sources if source.word == "endpoint"), None)
    if named is not None:
        batches = known_endpoints(dsn, batches, named)
    token, rows = secrets.token_urlsafe(8), _Rows(shape, batches)
    with contextlib.closing(connected(dsn, autocommit=False)) as connection, connection.cursor() as cursor:
        try:
            reader = pa.RecordBatchReader.from_batches(schema(shape), rows.numbered(token))
            cursor.adbc_ingest(table, reader, mode="append", db_schema_name="menzil")
            connection.commit()
        except adbc_driver_manager.Error as error:
            if rows.error is not None:  # it came from the frame, and the driver has wrapped it
                raise rows.error from None
            raise _refused(error) from None
    return token, rows.count


class _Rows:
    """The batches with their token and row numbers, counted on the way."""

    def __init__(self, shape: Shape, batches: Iterable[RecordBatch]) -> None:
        self.shape, self.batches = shape, batches
        self.count = 0
        self.error: Exception | None = None

    def numbered(self, token: str) -> Iterator[RecordBatch]:
        try:
            for batch in self.batches:
                yield staged(self.shape, batch, token, self.count)
                self.count += batch.num_rows
        except Exception as error:
            self.error = error
            raise


def schema(shape: Shape) -> Schema:
    """Columns of the staging table that this frame fills."""
    import pyarrow as pa

    types: dict[str, Any] = {
        "content": pa.binary(),
        "priority": pa.int32(),
        "scheduled_at": pa.timestamp("us", "UTC"),
        "expires_at": pa.timestamp("us", "UTC"),
        "replay_of": pa.int64(),
    }
    fields = [("token", pa.string()), ("n", pa.int64())]
    fields += [(source.word, types.get(source.word, pa.string())) for source in shape.sources]
    if shape.endpoint is not None:
        fields.append(("endpoint", pa.string()))
    return pa.schema(fields)


def staged(shape: Shape, batch: RecordBatch, token: str, start: int) -> RecordBatch:
    """The batch as the staging table has it. Pure."""
    import numpy  # pandas brings it; a range would be counted by hand
    import pyarrow as pa

    wanted, size = schema(shape), batch.num_rows
    columns: list[Array] = [pa.repeat(token, size), pa.array(numpy.arange(start, start + size))]
    for source in shape.sources:
        column = batch.column(source.index)
        try:
            columns.append(json_text(column) if source.nested else column.cast(wanted.field(source.word).type))
        except (pa.ArrowInvalid, ValueError) as error:
            raise InvalidValueError(f"A value of {source.word} cannot be sent: {_sentence(error)}") from None
    if shape.endpoint is not None:
        columns.append(pa.repeat(shape.endpoint, size))
    return pa.record_batch(columns, schema=wanted)


def _refused(error: Any) -> Exception:
    if error.sqlstate == "42P01":
        return RefusedError(
            "The staging table of this send is gone: it was committed or aborted meanwhile.",
            hint="another run has the same send id; run this one again, and what was sent stays sent once",
        )
    return RefusedError(f"PostgreSQL did not take the rows: {_sentence(error)}", sqlstate=error.sqlstate)


def _sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
