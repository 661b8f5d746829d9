"""The archive through JDBC, for comparison, where a driver for PostgreSQL is at hand.

pip has none, so it is looked for where distributions put it, or named by MENZIL_JDBC_JAR; without one the comparison is
left out and said so.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from psycopg.conninfo import conninfo_to_dict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_USUAL = Path("/usr/share/java/postgresql.jar")
MISSING = "no JDBC driver: install one (Debian: libpostgresql-jdbc-java) or set MENZIL_JDBC_JAR"


def jar() -> Path | None:
    """The driver, if there is one."""
    named = os.environ.get("MENZIL_JDBC_JAR")
    place = Path(named) if named else _USUAL
    return place if place.is_file() else None


def settings() -> dict[str, str]:
    """What a session needs to find the driver."""
    found = jar()
    return {} if found is None else {"spark.driver.extraClassPath": str(found)}


def archive(spark: SparkSession, dsn: str, **options: str) -> DataFrame:
    """All rows and columns; without options as Spark does it by default: one connection, everything fetched at once."""
    return table(spark, dsn, "archive", **options)


def table(spark: SparkSession, dsn: str, name: str, **options: str) -> DataFrame:
    """A relation of menzil's, with the types that menzil's own source gives its columns."""
    from pyspark.sql import functions as F

    from menzil.spark.source.relations import relation

    parts = conninfo_to_dict(dsn)
    reader = (
        spark.read.format("jdbc")
        .option("url", f"jdbc:postgresql://{parts['host']}:{parts['port']}/{parts['dbname']}")
        .option("driver", "org.postgresql.Driver")
        .option("dbtable", f"menzil.{name}")
    )
    for word in ("user", "password"):
        if parts.get(word):
            reader = reader.option(word, str(parts[word]))
    columns = relation(name).columns
    return reader.options(**options).load().select(*[F.col(each.name).cast(each.spark_type) for each in columns])


def tuned(rows: int) -> dict[str, str]:
    """What an expert would set: fetched in pieces, two connections with half the ids each."""
    return {
        "fetchsize": "10000",
        "numPartitions": "2",
        "partitionColumn": "id",
        "lowerBound": "1",
        "upperBound": str(rows),
    }
