"""Export of a month of the archive to a lake, verified, against COPY of the same rows, 0.1.0 and Spark's JDBC reader.

0.1.0 exports the same messages from its own tables, in a process of its own, in turn with this version. JDBC stands for
the least that one could do: write the rows as they come, compare nothing, leave the tries out. MENZIL_EXPORT_MESSAGES
says how many messages, where another number is wanted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from bench import history, jdbc, usage
from bench.before import NAME, NoHistoryError
from bench.readings import Reading, Series
from bench.server import connected
from bench.session import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MONTH = "2025-03"
#: Steps of an export as it tells them, and what happens in them.
STEPS = {
    "read": "counting in PostgreSQL",
    "write": "hashing, writing, reading back",
    "verify": "comparing",
    "commit": "commit",
}
#: What the export is compared with, and how much faster it is to be.
DEFAULT = "rows as they come through JDBC, default settings, nothing verified"
TUNED = "rows as they come through JDBC, two partitions, fetchsize 10,000, nothing verified"
TARGETS = {NAME: 1.5, DEFAULT: 1.2}


def run(session: Session) -> None:
    """Copy and export in turn; the ratio is export's speed to that of the copy."""
    from menzil.spark import get_session

    count = int(os.environ.get("MENZIL_EXPORT_MESSAGES", 100_000 if session.quick else 1_000_000))
    dsn = session.server.database()
    with connected(dsn) as conn:
        session.say(f"fills the archive with {count:,} messages")
        history.month(conn, "2025-03-01 00:00Z", 1, count, step="1 s", again=10)
        history.rest(conn)
        server = usage.server_process(conn)
        # Through JDBC Spark fetches everything at once unless told otherwise: room for a million rows.
        memory = {"spark.driver.memory": "4g"}
        spark = get_session("bench export", "local[2]", conf=memory | jdbc.settings())
        copies: list[float] = []
        exports: list[float] = []
        sizes: list[float] = []
        steps: dict[str, list[float]] = {f"{what} s": [] for what in STEPS.values()}
        before = old(session, count)
        ways: dict[str, Callable[[], None]] = {} if before is None else {NAME: lambda: once(before)}
        if jdbc.jar():
            ways[DEFAULT] = lambda: as_they_come(spark, dsn, {})
            ways[TUNED] = lambda: as_they_come(spark, dsn, jdbc.tuned(count))
        others = {name: Series() for name in ways}
        try:
            for _ in range(2):  # the JVMs have compiled what they need
                exported(spark, dsn, count)
                if before is not None:
                    once(before)
            for repeat in session.repeat():
                began = time.monotonic()
                with conn.cursor().copy("copy (select * from plain_archive) to stdout (format binary)") as copy:
                    size = sum(len(part) for part in copy)
                copies.append(count / (time.monotonic() - began))
                files: list[int] = []
                ours = timed(lambda: files.append(exported(spark, dsn, count, steps)), count, server, before)  # noqa: B023
                exports.append(ours.rate)
                sizes.append(files[0] / size)
                for name, work in ways.items():
                    others[name].add(ours, timed(work, count, server, before, theirs=name == NAME))
                session.say(f"round {repeat + 1}: export {ours.rate:,.0f} rows/s")
        finally:
            spark.stop()
            if before is not None and before.stdin is not None:
                before.stdin.close()
                before.wait(60)
    company = {"export rows/s": exports, "COPY rows/s": copies, "cores": [float(os.cpu_count() or 1)], **steps}
    session.figure(f"verified export of {count:,} messages / COPY binary", ratios(exports, copies), beside=company)
    session.figure("bytes in the lake / COPY binary", sizes)
    whole = [count / rate for rate in exports]
    shares = [share / seconds for share, seconds in zip(steps["commit s"], whole, strict=True)]
    session.figure("commit / export", shares, at_most=0.01)
    if not jdbc.jar():
        session.say(jdbc.MISSING)
    for name, series in others.items():
        beside = series.company("export rows/s", "rows/s")
        session.figure(f"export / {name}", series.ratios(), at_least=TARGETS.get(name), beside=beside)


def old(session: Session, count: int) -> subprocess.Popen[str] | None:
    """0.1.0 with its archive filled, ready to export; None where the git history has it not."""
    try:
        dsn, tree = session.server.database(session.before.sql), session.before.tree
    except NoHistoryError as error:
        session.say(f"{error}: nothing is compared with it")
        return None
    script = Path(__file__).parents[1] / "old_export.py"
    environment = os.environ | session.before.environment
    process = subprocess.Popen(
        [sys.executable, str(script), dsn, str(count)], cwd=tree, env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    return process


def once(process: subprocess.Popen[str]) -> None:
    """One export of 0.1.0."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline().strip().isdigit()


def timed(
    work: Callable[[], None],
    count: int,
    server: psutil.Process | None,
    before: subprocess.Popen[str] | None,
    *,
    theirs: bool = False,
) -> Reading:
    """Rows per second, and microseconds of processor time per row: of the server, and of one version's Spark."""
    old = None if before is None else before.pid
    process = psutil.Process(old) if theirs else psutil.Process()

    def spent() -> float:
        return usage.cpu(server) + usage.cpu(process, without=None if theirs else old)

    used, began = spent(), time.monotonic()
    work()
    seconds = time.monotonic() - began
    return Reading(count / seconds, (spent() - used) * 1e6 / count)


def ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Pair by pair, as they were measured."""
    return [our / their for our, their in zip(ours, theirs, strict=True)]


def exported(spark: SparkSession, dsn: str, count: int, steps: dict[str, list[float]] | None = None) -> int:
    """Bytes in the lake; `steps` get the seconds that the messages took in each."""
    from menzil.spark.jobs.export import export

    told: list[tuple[float, str]] = []

    def progress(step: str, month: str, _: int) -> None:
        told.append((time.monotonic(), step if month == _MONTH else ""))

    with tempfile.TemporaryDirectory(prefix="mz-lake-") as place:
        report = export(spark, dsn, place, months=[_MONTH], progress=progress)
        assert report.rows == count
        for (at, step), (then, _) in pairwise(told):
            if steps is not None and step in STEPS:
                steps[f"{STEPS[step]} s"].append(then - at)
        return sum(file.stat().st_size for file in Path(place, "messages").rglob("*.parquet"))


def as_they_come(spark: SparkSession, dsn: str, options: dict[str, str]) -> None:
    """The same partitions of Parquet, made with what Spark brings along."""
    with tempfile.TemporaryDirectory(prefix="mz-lake-") as place:
        frame = jdbc.archive(spark, dsn, **options)
        parts = frame.selectExpr("*", "year(created_at) as year", "month(created_at) as month", "channel as endpoint")
        parts.write.partitionBy("year", "month", "endpoint").option("compression", "zstd").parquet(f"{place}/data")
