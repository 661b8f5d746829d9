"""Read a relation with the columns one wants: Spark does not tell a Python source which columns it needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from menzil.model.errors import UsageError
from menzil.spark.source.relations import RELATIONS, relation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def relations() -> list[str]:
    """What can be read."""
    return list(RELATIONS)


def read(
    spark: SparkSession,
    dsn: str | None = None,
    table: str = "archive",
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    **options: Any,
) -> DataFrame:
    """The relation as a DataFrame. Driver; nothing is read yet.

    Without a dsn the database is the next of the five answers: MENZIL_DSN, menzil.toml, PG*, the embedded PostgreSQL.
    `where` is a Spark SQL condition and may use columns that are not in `columns`. Other options are the source's:
    numPartitions, snapshot, batchBytes, and of the archive endedFrom, the least transaction id of ends.
    """
    # Only now: it reads psycopg, and a session starts while that is not loaded yet.
    from menzil.spark.database import for_driver

    found, chosen = relation(table), for_driver(dsn)
    ensure_source(spark)
    reader = spark.read.format("menzil").option("dsn", str(chosen)).option("table", table)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    if columns is None:
        frame = reader.schema(found.ddl).load()
        return frame.where(where) if where else frame
    if not where:
        return reader.schema(found.chosen(columns)).load()
    asked = _mentioned(where, [column.name for column in (*found.columns, *found.more)])
    more = [name for name in asked if name not in columns]
    return reader.schema(found.chosen([*columns, *more])).load().where(where).select(*columns)


def ensure_source(spark: SparkSession) -> None:
    """Register the source where Spark did not find it by itself: a session that was there before the installation."""
    try:
        from menzil.spark.source.datasource import MenzilDataSource
    except ModuleNotFoundError as error:
        if error.name != "pyspark.sql.datasource":
            raise
        import pyspark

        raise UsageError(
            f"PySpark {pyspark.__version__} knows no data sources written in Python.",
            hint="menzil[spark] asks for the version it needs",
        ) from error

    if not _is_known(spark):  # Spark warns of a source that takes the place of another, though it be the same
        spark.dataSource.register(MenzilDataSource)
    if hasattr(spark, "_jsparkSession"):
        # A writer looks for its source in the session of its thread, and a thread that did not make it has none.
        spark._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)


def _is_known(spark: SparkSession) -> bool:
    if not hasattr(spark, "_jsparkSession"):
        return False
    return bool(spark._jsparkSession.sessionState().dataSourceManager().dataSourceExists("menzil"))


def _mentioned(where: str, names: Sequence[str]) -> list[str]:
    """The columns a condition may use. A name inside a text is one column too many, and never one too few."""
    words = {word.lower() for word in re.findall(r"\w+", where)}
    return [name for name in names if name in words]
