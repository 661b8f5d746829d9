"""What the tests of the writer share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from menzil.spark.source.datasource import MenzilDataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write(frame: DataFrame, dsn: str, send_id: str | None = None, mode: str = "append", **options: str) -> None:
    """Send a frame."""
    frame.sparkSession.dataSource.register(MenzilDataSource)
    writer = frame.write.format("menzil").option("dsn", dsn).options(**options).mode(mode)
    (writer.option("sendId", send_id) if send_id else writer).save()


def one(dsn: str, query: str, *params: Any) -> Any:
    """The only row, or its only column."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        (row,) = conn.execute(query, params or None).fetchall()
    return row[0] if len(row) == 1 else row


def staged(dsn: str) -> int:
    """How many staging tables there are."""
    return one(dsn, "select count(*) from pg_class where relname ~ '^bulk_staging_' and relkind = 'r'")
