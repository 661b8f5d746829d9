"""Read a lake: exactly what the manifests name, whatever else lies there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from menzil.spark.lake import layout, schema
from menzil.spark.lake.load import load
from menzil.spark.lake.manifest import File
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.storage import Storage, open_storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DIRECTORIES = {MESSAGES: layout.DATA, EVENTS: layout.EVENTS}


def files(lake: str | os.PathLike[str], spark: SparkSession | None = None, *, table: str = MESSAGES) -> list[str]:
    """The paths of all files that count, for DuckDB, pandas, or anything else that reads Parquet.

    `table` is messages or events.
    """
    storage = open_storage(lake, spark)
    return [f"{storage.root}/{path}" for path in sorted(load(storage).tables[table].files)]


def read(spark: SparkSession, lake: str | os.PathLike[str], *, months: Sequence[str] | None = None) -> DataFrame:
    """The messages of a lake, one row each. Driver: the manifests are read now, the files when Spark needs them.

    `months`, as "2026-03", leaves the files of all others alone; so does a condition on year, month or endpoint.
    """
    storage = open_storage(lake, spark)
    table = load(storage).messages
    chosen = [file for file in table.files.values() if months is None or file.month in months]
    return frame_of(spark, storage, chosen, schema.union(table.schemas))


def events(spark: SparkSession, lake: str | os.PathLike[str]) -> DataFrame | None:
    """The event log of a lake: the columns of menzil.event_log, and year and month. Driver.

    None when no export has brought it there yet.
    """
    storage = open_storage(lake, spark)
    table = load(storage).events
    if not table.slices:
        return None
    return frame_of(spark, storage, list(table.files.values()), schema.union(table.schemas, EVENTS), EVENTS)


def frame_of(
    spark: SparkSession, storage: Storage, chosen: Sequence[File], columns: dict[str, str], table: str = MESSAGES
) -> DataFrame:
    """Those files, with the columns of their directories. A column that a file does not have is NULL there."""
    ddl = schema.ddl(columns, table)
    if not chosen:
        return spark.createDataFrame([], ddl)
    paths = [f"{storage.root}/{path}" for path in sorted(file.path for file in chosen)]
    return spark.read.option("basePath", f"{storage.root}/{_DIRECTORIES[table]}").schema(ddl).parquet(*paths)
