"""Secrets are in no file of the lake and in no event that Spark logs. Payloads are in the lake: that is its purpose."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from menzil.spark import lake
from menzil.spark.jobs.export import export
from menzil.spark.jobs.report import report
from tests.canary.canaries import STORED, Canaries, Kind
from tests.canary.fixtures import Planted

pytestmark = pytest.mark.slow

#: Columns that hold what a sender wrote. All others hold no payload.
BODIES = {"payload", "content", "headers", "metadata", "state"}
KEYS = {"ordering_key", "idempotency_key"}


def values(file: Path) -> dict[str, bytes]:
    """What each column of a Parquet file holds, decompressed and decoded."""
    found = {}
    table = pyarrow.parquet.ParquetFile(file).read()
    for name in table.column_names:
        told = [one for one in table[name].to_pylist() if one is not None]
        found[name] = b"\n".join(one if isinstance(one, bytes) else str(one).encode() for one in told)
    return found


def test_canaries_of_secrets_are_in_no_file_of_the_lake_and_no_event_of_spark(
    spark: SparkSession, planted: Planted, event_log: Path, tmp_path: Path
) -> None:
    planted.work()
    export(spark, planted.dsn, tmp_path, run_id="nightly")
    assert lake.verify(tmp_path, planted.dsn, spark=spark).problems == ()
    read = spark.read.format("menzil").option("dsn", planted.dsn).option("table", "archive").load()
    assert read.where("channel like 'canary%'").count() > 10
    report(spark, str(tmp_path))
    in_lake(planted.canaries, tmp_path)
    events = [file for file in event_log.rglob("*") if file.is_file() and file.stat().st_size]
    text = b"\n".join(file.read_bytes() for file in events)
    assert b"SparkListenerJobEnd" in text
    assert b"canary-handler" in text or b"canary%" in text, "otherwise this test would prove nothing"
    planted.canaries.clean(text, "the event log of Spark")


def in_lake(canaries: Canaries, place: Path) -> None:
    """Look into every file, byte by byte and value by value."""
    assert canaries.clean_files(place, {Kind.SECRET}) > 5
    seen = set()
    for file in place.rglob("*"):
        if file.suffix == ".json":
            canaries.clean(file.read_bytes(), str(file))
        elif file.suffix == ".parquet":
            for column, told in values(file).items():
                canaries.clean(column.encode() + b" " + told, f"{column} of {file.name}", {Kind.SECRET})
                if column not in BODIES | KEYS:
                    written = "canary-sql" in str(file)  # errors that a program wrote itself
                    kinds = {Kind.PAYLOAD, Kind.REDACTED} if not written else set()
                    kinds -= {Kind.PAYLOAD} if column in ("last_error", "response", "attempts") else set()
                    canaries.clean(column.encode() + b" " + told, f"{column} of {file.name}", STORED | kinds)
                seen |= {canary.kind for canary in canaries.found(told)}
    assert {Kind.PAYLOAD, Kind.REDACTED} <= seen, "payloads are there as they were sent"
