"""Executors are killed at any moment of an export: every row is in the lake once, and no unproved file counts.

`pytest -n 0 -s -m torture tests/spark/test_executors_killed.py`; MENZIL_LAKE_KILLS says how many.
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil
import pytest
from pyspark.sql import SparkSession

from menzil.spark import lake
from tests.spark.lake_history import event_lines, fill, in_database, in_lake, lines_in_lake

pytestmark = [pytest.mark.torture, pytest.mark.timeout(7200)]

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("MENZIL_LAKE_KILLS", "100"))


def executors(driver: int) -> list[psutil.Process]:
    """The Java processes of the driver's executors."""
    found = []
    for process in psutil.Process(driver).children(recursive=True):
        with suppress(psutil.Error):
            if any("CoarseGrainedExecutorBackend" in word for word in process.cmdline()):
                found.append(process)
    return found


def says(stream: IO[str], seconds: float) -> str:
    """The next line of the driver."""
    assert select.select([stream], [], [], seconds)[0], "the driver says nothing"
    return stream.readline().strip()


def test_executors_killed_at_random_moments_of_exports_lose_nothing_and_double_nothing(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    seed = int(os.environ.get("MENZIL_LAKE_SEED", random.randrange(1 << 32)))
    print(f"MENZIL_LAKE_SEED={seed}")
    moments, place, length = random.Random(seed), tmp_path / "lake", 5.0
    (tmp_path / "dsn").write_text(db)
    (tmp_path / "home").mkdir()
    command = [sys.executable, "-m", "tests.spark.export_driver", str(tmp_path / "home")]
    with (tmp_path / "log").open("w") as log:
        driver = subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    assert driver.stdin is not None
    assert driver.stdout is not None
    in_time = 0
    try:
        assert says(driver.stdout, 600) == "up"
        for number in range(KILLS):
            fill(db, 8 * number + 1, 8 * number + 8)
            began = time.monotonic()
            driver.stdin.write(f"{tmp_path / 'dsn'}\t{place}\trun-{number}\n")
            driver.stdin.flush()
            said = ""
            if number and not select.select([driver.stdout], [], [], moments.uniform(0.0, length))[0]:
                running = executors(driver.pid)
                if running:
                    moments.choice(running).send_signal(signal.SIGKILL)
                    in_time += 1
            said = says(driver.stdout, 600)
            length = time.monotonic() - began if not number else min(length, max(2.0, time.monotonic() - began))
            assert said == "exported 8", (tmp_path / "log").read_text()[-3000:]
            assert lake.verify(place).problems == (), f"after {number + 1} kills"
            assert in_lake(place) == in_database(db)
            print(f"{number + 1} of {KILLS}: {in_time} killed in time, {time.monotonic() - began:.1f} s", flush=True)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert in_time
    assert lines_in_lake(place) == event_lines(db)
    named = {*lake.files(place), *lake.files(place, table="events")}
    assert lake.verify(place, db, spark=spark).problems == ()
    print(f"{len(named)} files count of {len(list(place.rglob('*.parquet')))} that lie there")
