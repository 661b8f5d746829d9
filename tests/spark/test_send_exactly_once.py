"""Executors and drivers that are killed, with kill -9, in the worst moment: every row is one message, none is two."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.spark.sending import one, staged, write
from tests.sql.clock import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]

#: Staging tables of sends that are over.
LEFT = """
select count(*) from pg_class c where c.relname ~ '^bulk_staging_' and c.relkind = 'r'
   and not exists (select 1 from menzil.bulk_send s where s.state = 'open' and s.staging = c.relname)"""


@contextmanager
def cluster(dsn: str, rows: int) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A driver process with two executors, and the directory where it says how far it is."""
    with tempfile.TemporaryDirectory(prefix="mz-") as name:
        place = Path(name)
        (place / "dsn").write_text(dsn)
        with (place / "log").open("wb") as log:
            command = [sys.executable, "-m", "tests.spark.cluster_driver", name, str(rows)]
            driver = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
            try:
                yield driver, place
            finally:
                kill_all(driver)


def kill_all(driver: subprocess.Popen[bytes]) -> None:
    """The driver, its Java and the executors: they are one process group."""
    with suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def appears(driver: subprocess.Popen[bytes], path: Path, seconds: float) -> str:
    """Wait for a file of the driver."""

    def look() -> bool:
        gone = driver.poll() is not None
        assert path.exists() or not gone, (path.parent / "log").read_text()[-3000:]
        return path.exists()

    until(look, seconds)
    return path.read_text()


def staged_rows(dsn: str, send_id: str) -> int:
    """What the tasks of an open send have committed so far, unseen by everybody else."""
    table = one(dsn, "select staging from menzil.bulk_send where send_id = %s", send_id)
    return int(one(dsn, f"select count(*) from menzil.{table}"))


def killed_in_the_worst_moment(spark: SparkSession, dsn: str, rows: int, patience: float) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.set_setting('max_queue_size', '0')")
        conn.execute("select menzil.channel_set('naive'), menzil.channel_set('exact')")
    sent = "select count(*), count(distinct payload) from menzil.queue where channel = %s"
    with cluster(dsn, rows) as (driver, place):
        appears(driver, place / "up", patience)

        # The naive way: the rows of the killed task are there twice. So this test would notice.
        os.kill(int(appears(driver, place / "naive", patience)), signal.SIGKILL)
        appears(driver, place / "naive.done", patience)
        print(f"the naive way: {one(dsn, sent, 'naive')[0]:,} messages of 8,000 rows")
        assert one(dsn, sent, "naive") == (9_000, 8_000)

        os.kill(int(appears(driver, place / "executor", patience)), signal.SIGKILL)
        written = staged_rows(dsn, "executor")
        began = time.monotonic()
        appears(driver, place / "executor.done", patience)
        assert written > 0  # tasks had committed
        print(f"executor killed -9 with {written:,} rows staged; {time.monotonic() - began:.1f} s later "
              f"{one(dsn, sent, 'exact')[0]:,} of {rows:,} messages are sent")  # fmt: skip
        assert one(dsn, sent, "exact") == (rows, rows)
        assert one(dsn, LEFT) == 0  # the next send may be open already

        appears(driver, place / "driver", patience)
        kill_all(driver)
    assert one(dsn, sent, "exact") == (rows, rows)  # nothing of the second send is visible
    print(f"driver killed -9: {one(dsn, sent, 'exact')[0] - rows:,} of {rows:,} messages are visible")
    assert one(dsn, "select state from menzil.bulk_sends where send_id = 'driver'") == "open"

    frame = spark.range(0, rows, 1, 3).selectExpr("cast(id + 1000000000 as string) as payload")
    for _ in range(2):  # the rerun is exact, the one after it changes nothing
        write(frame, dsn, "driver", endpoint="exact")
        assert one(dsn, sent, "exact") == (2 * rows, 2 * rows)
        assert staged(dsn) == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_executors_and_drivers_lose_nothing_and_double_nothing(spark: SparkSession, db: str) -> None:
    killed_in_the_worst_moment(spark, db, 40_000, 180)


@pytest.mark.torture
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("compiled")
def test_killed_executors_and_drivers_with_800_000_rows(spark: SparkSession, db: str) -> None:
    killed_in_the_worst_moment(spark, db, 800_000, 600)
