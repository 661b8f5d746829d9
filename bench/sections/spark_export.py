"""Export of a month of the archive to a lake, verified, against COPY of the same rows to nowhere and against JDBC.

The same job through JDBC is the same to the last step: rows gathered by endpoint and sorted, tries beside them, files
read back and compared with PostgreSQL. Only the reading is Spark's own. Beside it stands the least that one could do
with JDBC: write the rows as they come, compare nothing, leave the tries out.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from bench import history, jdbc
from bench.server import connected
from bench.session import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MONTH = "2025-03"
DEFAULT = "the same job through JDBC, default settings"
#: Steps of an export as it tells them, and what happens in them.
STEPS = {"read": "hashing in PostgreSQL", "write": "reading and writing", "verify": "reading back"}


def run(session: Session) -> None:
    """Copy and export in turn; the ratio is export's speed to that of the copy."""
    from menzil.spark import get_session

    count = 100_000 if session.quick else 1_000_000
    dsn = session.server.database()
    with connected(dsn) as conn:
        session.say(f"fills the archive with {count:,} messages")
        history.month(conn, "2025-03-01 00:00Z", 1, count, step="1 s", again=10)
        history.rest(conn)
        # Through JDBC Spark fetches everything at once unless told otherwise: room for a million rows.
        memory = {"spark.driver.memory": "4g"}
        spark = get_session("bench export", "local[2]", conf=memory | jdbc.settings())
        copies: list[float] = []
        exports: list[float] = []
        others: dict[str, list[float]] = {name: [] for name in ways(count)} if jdbc.jar() else {}
        sizes: list[float] = []
        steps: dict[str, list[float]] = {f"{what} s": [] for what in STEPS.values()}
        try:
            exported(spark, dsn, count)  # the JVM has compiled what it needs
            for repeat in session.repeat():
                began = time.monotonic()
                with conn.cursor().copy("copy (select * from plain_archive) to stdout (format binary)") as copy:
                    size = sum(len(part) for part in copy)
                copies.append(count / (time.monotonic() - began))
                rate, files = exported(spark, dsn, count, steps)
                exports.append(rate)
                sizes.append(files / size)
                for name in others:
                    others[name].append(ways(count)[name](spark, dsn))
                session.say(f"round {repeat + 1}: export {rate:,.0f} rows/s")
        finally:
            spark.stop()
    company = {"export rows/s": exports, "COPY rows/s": copies, "cores": [os.cpu_count() or 1], **steps}
    session.figure(f"verified export of {count:,} messages / COPY binary", ratios(exports, copies), beside=company)
    session.figure("bytes in the lake / COPY binary", sizes)
    if not others:
        session.say(jdbc.MISSING)
    for name, rates in others.items():
        target = 2.0 if name == DEFAULT else None
        session.figure(f"export / {name}", ratios(exports, rates), at_least=target, beside={"JDBC rows/s": rates})


def ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Pair by pair, as they were measured."""
    return [our / their for our, their in zip(ours, theirs, strict=True)]


def ways(count: int) -> dict[str, Callable[[SparkSession, str], float]]:
    """What the export is compared with, each as rows per second."""
    tuned = jdbc.tuned(count)
    return {
        DEFAULT: lambda spark, dsn: the_same(spark, dsn, count, {}),
        "the same job through JDBC, two partitions, fetchsize 10,000": lambda spark, dsn: the_same(
            spark, dsn, count, tuned
        ),
        "rows as they come through JDBC, default settings, nothing verified": lambda spark, dsn: as_they_come(
            spark, dsn, count
        ),
    }


def exported(
    spark: SparkSession, dsn: str, count: int, steps: dict[str, list[float]] | None = None
) -> tuple[float, int]:
    """Rows per second, and bytes in the lake; `steps` get the seconds that the messages took in each."""
    from menzil.spark.jobs.export import export

    told: list[tuple[float, str]] = []

    def progress(step: str, month: str, _: int) -> None:
        told.append((time.monotonic(), step if month == _MONTH else ""))

    with tempfile.TemporaryDirectory(prefix="mz-lake-") as place:
        began = time.monotonic()
        report = export(spark, dsn, place, months=[_MONTH], progress=progress)
        rate = count / (time.monotonic() - began)
        assert report.rows == count
        for (at, step), (then, _) in pairwise(told):
            if steps is not None and step in STEPS:
                steps[f"{STEPS[step]} s"].append(then - at)
        return rate, sum(file.stat().st_size for file in Path(place, "data").rglob("*.parquet"))


def the_same(spark: SparkSession, dsn: str, count: int, options: dict[str, str]) -> float:
    """Rows per second of the export, with another reader in the place of ours."""
    from menzil.spark.jobs import export_rows

    def read(spark: SparkSession, dsn: str, name: str, **_: object) -> DataFrame:
        return jdbc.table(spark, dsn, name, more=True, **(options if name == "archive" else {}))

    with mock.patch.object(export_rows, "read", read):
        return exported(spark, dsn, count)[0]


def as_they_come(spark: SparkSession, dsn: str, count: int) -> float:
    """Rows per second of the same partitions of Parquet, made with what Spark brings along."""
    with tempfile.TemporaryDirectory(prefix="mz-lake-") as place:
        began = time.monotonic()
        frame = jdbc.archive(spark, dsn)
        parts = frame.selectExpr("*", "year(created_at) as year", "month(created_at) as month", "channel as endpoint")
        parts.write.partitionBy("year", "month", "endpoint").option("compression", "zstd").parquet(f"{place}/data")
        rate = count / (time.monotonic() - began)
        assert spark.read.parquet(f"{place}/data").count() == count
        return rate
