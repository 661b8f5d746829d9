"""The archive into Spark, against two binary COPYs of the same rows in a plain table and against JDBC.

Also: how soon a new session has a first result.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable

import psutil

from bench import history, jdbc, usage
from bench.readings import Reading, Series
from bench.server import connected
from bench.session import Session

ROWS = {False: 2_000_000, True: 200_000}
_MONTHS = ("2025-03-01 00:00Z", "2025-04-01 00:00Z")
_COPY = """copy (select * from plain_archive where created_at >= '{0}' and created_at < '{0}'::timestamptz + '1 month')
to stdout (format binary)"""
_FIRST = """
from menzil.spark import get_session
spark = get_session(quick=True)
print(spark.range(1000).selectExpr("sum(id)").collect()[0][0], flush=True)
import psutil
from bench import usage
print(usage.cpu(psutil.Process()), flush=True)
"""


def run(session: Session) -> None:
    """Start sessions while nothing else is at work; then read and copy in turn."""
    starting(session)
    count = ROWS[session.quick]
    dsn = session.server.database()
    with connected(dsn) as conn:
        session.say(f"fills the archive with {count:,} messages")
        for number, month in enumerate(_MONTHS):
            history.month(conn, month, 1 + number * count // 2, count // 2)
        history.rest(conn)
        reading(session, dsn, count, usage.server_process(conn))


def reading(session: Session, dsn: str, count: int, server: psutil.Process | None) -> None:
    """All columns of all rows, into a sink that throws them away."""
    from menzil.spark import get_session, read

    spark = get_session("bench read", "local[2]", conf={"spark.driver.memory": "1g"} | jdbc.settings())
    series, tuned = Series(), Series()

    def through_spark() -> None:
        read(spark, dsn).write.format("noop").mode("overwrite").save()

    def through_jdbc() -> None:
        jdbc.archive(spark, dsn, **jdbc.tuned(count // 2)).write.format("noop").mode("overwrite").save()

    try:
        for _ in range(2):  # Python workers are up, and the JVM has compiled what it needs
            through_spark()
        for _ in session.repeat():
            base = timed(lambda: copy_twice(dsn), count, server)
            ours = timed(through_spark, count, server)
            series.add(ours, base)
            if jdbc.jar() is not None:
                tuned.add(ours, timed(through_jdbc, count, server))
    finally:
        spark.stop()
    session.figure(
        f"Spark read of {count:,} archived messages / two binary COPYs",
        series.ratios(),
        at_least=0.65,
        beside=series.company("read rows/s", "COPY rows/s"),
    )
    if jdbc.jar() is None:
        session.say(jdbc.MISSING)
        return
    session.figure(
        "Spark read / JDBC with two partitions and fetchsize 10,000",
        tuned.ratios(),
        beside=tuned.company("read rows/s", "JDBC rows/s"),
    )


def copy_twice(dsn: str) -> None:
    """A connection for each month, both at once, nothing kept."""

    def copy(month: str) -> None:
        with connected(dsn) as conn, conn.cursor().copy(_COPY.format(month).encode()) as stream:
            for _ in stream:
                pass

    threads = [threading.Thread(target=copy, args=(month,)) for month in _MONTHS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def timed(work: Callable[[], None], count: int, server: psutil.Process | None) -> Reading:
    """Rows per second, and microseconds of processor time per row: ours, Spark's and the server's."""
    everyone = (psutil.Process(), server)
    spent = sum(map(usage.cpu, everyone))
    began = time.monotonic()
    work()
    seconds = time.monotonic() - began
    return Reading(count / seconds, (sum(map(usage.cpu, everyone)) - spent) * 1e6 / count)


def starting(session: Session) -> None:
    """A new process each time, after one that filled the cache."""
    walls: list[float] = []
    cpus: list[float] = []
    for number in range(session.repeats + 2):
        began = time.monotonic()
        with subprocess.Popen([sys.executable, "-c", _FIRST], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "499500"
            seconds = time.monotonic() - began
            said = process.stdout.readline()
            process.stdout.read()  # until the JVM is gone too: the first one writes its archive as it ends
        if number >= 2:  # the first fills the cache, the second takes it over
            walls.append(seconds)
            cpus.append(float(said))
        else:
            time.sleep(2)
    session.figure(
        "first result of a new Spark session, warm cache", walls, at_most=6.0, unit="s", beside={"CPU s": cpus}
    )
