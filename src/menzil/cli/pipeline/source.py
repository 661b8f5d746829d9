"""The SOURCE of a command as a DataFrame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from menzil.model.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The format of a name that ends so. A directory is Parquet unless --format names another one.
_ENDINGS = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}


def kind_of(source: str, kind: str | None) -> str:
    """What was said, or what the name tells."""
    if kind is not None:
        return kind
    endings = Path(source.removesuffix(".gz")).suffix.lower()
    if endings in _ENDINGS:
        return _ENDINGS[endings]
    if Path(source).is_dir():
        return "parquet"
    raise UsageError(f"What is {source}?", hint="say --format parquet, csv, json or table")


def demand(source: str, kind: str) -> None:
    """Refuse a file that is not there before Spark is started. Places with a scheme (s3a://) are Spark's to find."""
    if (
        kind != "table"
        and "://" not in source
        and not any(sign in source for sign in "*?[{")
        and not Path(source).exists()
    ):
        raise UsageError(f"There is no file or directory {source}.", hint="--format table reads a table of the catalog")


def open_source(spark: SparkSession, source: str, kind: str, schema: str | None) -> DataFrame:
    """Read it, or say in a sentence why not."""
    from menzil.spark.jobs.plainly import plainly

    return plainly(_read)(spark, source, kind, schema)


def _read(spark: SparkSession, source: str, kind: str, schema: str | None) -> DataFrame:
    """CSV has a header, and its values are texts unless a schema says otherwise: 007 is not 7."""
    if kind == "table":
        return spark.table(source)
    reader = spark.read if schema is None else spark.read.schema(schema)
    if kind == "csv":
        separator = "\t" if ".tsv" in Path(source).suffixes else ","
        # A quote inside quotes is doubled, as in RFC 4180, and a value may go on in the next line.
        return reader.csv(source, header=True, sep=separator, quote='"', escape='"', multiLine=True)
    return reader.json(source) if kind == "json" else reader.parquet(source)
