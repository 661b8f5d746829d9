"""Spark's exactly-once writer against what psql can do: COPY into a staging table, then INSERT … SELECT."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench import usage
from bench.payloads import text
from bench.readings import Reading, Series
from bench.server import CHANNEL, connected
from bench.session import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = {False: 800_000, True: 400_000}
REPEATS = 3
TARGET = 0.6

_STAGING = "create unlogged table bare_staging (n bigint, payload text)"
_COPY = "copy bare_staging from stdin"
_MESSAGES = """
insert into menzil.message (id, channel_id, priority, created_at, payload)
select s.n, c.id, 0, now(), s.payload::jsonb from bare_staging s, menzil.channel c"""
_LINE = """
insert into menzil.line (channel_id, rank, due_at, first_id, n)
select c.id, 10, now(), 1, (select count(*) from bare_staging) from menzil.channel c"""


def run(session: Session) -> None:
    """Both in turn, a fresh database for each, the same rows."""
    from menzil.spark import get_session

    rows = ROWS[session.quick]
    spark = get_session("bench", "local[2]", conf={"spark.driver.memory": "1g"})
    try:
        with tempfile.TemporaryDirectory(prefix="mz-") as place:
            compare(session, spark, Path(place), rows)
    finally:
        spark.stop()


def compare(session: Session, spark: SparkSession, place: Path, rows: int) -> None:
    """The figure."""
    from pyspark.sql.functions import lit

    source, lines = str(place / "rows"), place / "rows.tsv"
    spark.range(0, rows, 1, 4).select(lit(text(0)).alias("payload")).write.parquet(source)
    with lines.open("w") as file:
        file.writelines(f"{n}\t{text(0)}\n" for n in range(1, rows + 1))
    send(spark, session.server.database(), source, "warm", 1_000)
    series = Series()
    for _, _ in zip(session.repeat(), range(REPEATS), strict=False):
        ours, base = session.server.database(), session.server.database()
        wrote = measured(ours, rows, lambda dsn=ours: send(spark, dsn, source, "bench", None))  # type: ignore[misc]
        copied = measured(base, rows, lambda dsn=base: copy(dsn, lines))  # type: ignore[misc]
        series.add(wrote, copied)
        session.say(f"Spark {wrote.rate:,.0f} rows/s, COPY and INSERT {copied.rate:,.0f} rows/s")
        for dsn in (ours, base):
            with connected(dsn) as conn:
                assert conn.execute("select count(*) from menzil.queue").fetchone() == (rows,)
    session.figure(
        f"Spark write of {rows:,} rows, exactly once / COPY + INSERT SELECT",
        series.ratios(),
        at_least=TARGET,
        beside=series.company("rows/s", "COPY + INSERT SELECT rows/s"),
    )


def measured(dsn: str, rows: int, work: Callable[[], None]) -> Reading:
    """Rows per second, and the processor time of Spark, of us and of the server."""
    with connected(dsn) as conn:
        conn.execute("checkpoint")
        server = usage.server_process(conn)
        before, began = usage.cpu(server) + usage.cpu_of(os.getpid()), time.monotonic()
        work()
        seconds = time.monotonic() - began
        spent = usage.cpu(server) + usage.cpu_of(os.getpid()) - before
    return Reading(rows / seconds, spent / rows * 1e6)


def send(spark: SparkSession, dsn: str, source: str, send_id: str, limit: int | None) -> None:
    """Ours: tasks stage, the driver commits."""
    from menzil.spark.source.datasource import MenzilDataSource

    spark.dataSource.register(MenzilDataSource)
    frame = spark.read.parquet(source)
    frame = frame if limit is None else frame.limit(limit)
    options = {"dsn": dsn, "endpoint": CHANNEL, "sendId": send_id}
    frame.write.format("menzil").options(**options).mode("append").save()


def copy(dsn: str, lines: Path) -> None:
    """The limit: one connection, no checks, nothing that survives a crash in the middle."""
    with connected(dsn) as conn, conn.transaction(), lines.open("rb") as file:
        conn.execute(_STAGING)
        with conn.cursor().copy(_COPY) as into:
            while chunk := file.read(1 << 20):
                into.write(chunk)
        conn.execute(_MESSAGES)
        conn.execute(_LINE)
        conn.execute("drop table bare_staging")
