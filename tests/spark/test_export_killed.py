"""Drivers of exports are killed at any moment: nothing is lost, doubled, half there, or dropped before it is proved."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from menzil.spark import lake
from menzil.spark.jobs.export import export
from tests.integration.cli.user import User
from tests.spark.forked import Driver
from tests.spark.lake_history import DECEMBER, JANUARY, archived, event_lines, fill, in_database, in_lake, lines_in_lake

pytestmark = pytest.mark.slow

_KILLED = """
import os, signal, sys
from menzil.spark.session import get_session
from menzil.spark.jobs.export import export
def progress(step, month, rows):
    print(step, month, flush=True)
    if step == "commit":
        os.kill(os.getpid(), signal.SIGKILL)
spark = get_session("killed", "local[1]", quick=True, conf={"spark.sql.codegen.wholeStage": "false"})
export(spark, os.environ["MENZIL_DSN"], sys.argv[1], run_id="killed", progress=progress)
"""


def test_a_driver_that_is_killed_with_its_jvm_is_finished_by_the_next_run(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    fill(db, 1, 6)
    place = str(tmp_path / "lake")
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, place],
        env=os.environ | {"MENZIL_DSN": db},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout.splitlines()[-1] == f"commit {DECEMBER}"
    assert in_lake(tmp_path / "lake") == {}
    user = User(db)
    command = ["pipeline", "export", "--lake", place, "--run-id", "killed", "--drop"]
    plan = user.plans(*command)
    assert [each["month"] for each in plan["plan"]["months"]][:2] == [DECEMBER, JANUARY]
    assert archived(db) == 6
    done = user.reads(*command, "--yes")["done"]
    assert [(each["month"], each["drop"]) for each in done["months"]] == [(DECEMBER, "dropped"), (JANUARY, "dropped")]
    assert set(in_lake(tmp_path / "lake")) == set(range(1, 7))
    assert archived(db) == 0


#: With -s each kill is told; MENZIL_LAKE_KILLS says how many.
MANY = pytest.param(
    int(os.environ.get("MENZIL_LAKE_KILLS", "100")), id="many", marks=[pytest.mark.torture, pytest.mark.timeout(3600)]
)


@pytest.mark.parametrize("kills", [pytest.param(3, id="a few"), MANY])
def test_drivers_killed_at_random_moments_leave_a_lake_that_the_next_run_completes(
    spark: SparkSession, db: str, tmp_path: Path, kills: int
) -> None:
    seed = int(os.environ.get("MENZIL_LAKE_SEED", random.randrange(1 << 32)))
    print(f"MENZIL_LAKE_SEED={seed}")
    moments = random.Random(seed)
    sent: dict[int, Any] = {}

    def grow() -> None:
        first = len(sent) + 1
        fill(db, first, first + 3)
        sent.update(in_database(db))

    grow()
    began = time.monotonic()
    with Driver(spark, lambda: export(spark, db, tmp_path, drop=True)) as driver:
        assert driver.ends_within(600)
    assert driver.fate == 0
    length = time.monotonic() - began

    fates = []
    for number in range(kills):
        grow()
        run = f"night-{number // 2}"  # every other one repeats a run that was killed
        began = time.monotonic()
        with Driver(spark, lambda run=run: export(spark, db, tmp_path, drop=True, run_id=run)) as driver:
            if driver.ends_within(moments.uniform(0.0, length)):
                length = time.monotonic() - began  # a warm JVM is quicker: kill earlier
        assert driver.fate in (0, -signal.SIGKILL)
        fates.append(driver.fate)
        # Whoever reads by the hint sees a whole state; what is not among them has not left the database.
        assert lake.verify(tmp_path).problems == (), f"after {number + 1} kills"
        assert sent.keys() - ids_in_lake(tmp_path) <= ids_in_database(db)
        print(f"{number + 1} of {kills}: {'killed' if driver.fate else 'ended before'}", flush=True)
    assert -signal.SIGKILL in fates

    alone(db)
    export(spark, db, tmp_path, drop=True)
    assert in_lake(tmp_path) == sent
    assert lines_in_lake(tmp_path) == event_lines(db)
    assert lake.verify(tmp_path, db, spark=spark).problems == ()
    again = export(spark, db, tmp_path, drop=True)
    assert (again.rows, in_lake(tmp_path)) == (0, sent)


def ids_in_lake(place: Path) -> set[int]:
    """Read without Spark, from whole files; an id that lies there twice fails."""
    tables = [pyarrow.parquet.read_table(path, columns=["id"], partitioning=None) for path in lake.files(place)]
    ids = [id for table in tables for id in table["id"].to_pylist()]
    assert len(ids) == len(set(ids))
    return set(ids)


def ids_in_database(dsn: str) -> set[int]:
    with psycopg.connect(dsn) as conn:
        return {id for (id,) in conn.execute("select id from menzil.archive")}


def alone(dsn: str, patience: float = 30.0) -> None:
    """Until the server has noticed that the drivers are dead: what they had open hides what came after it."""
    deadline = time.monotonic() + patience
    with psycopg.connect(dsn, autocommit=True) as conn:
        query = (
            "select 1 from pg_stat_activity where datname = current_database() and application_name = 'menzil export'"
        )
        while conn.execute(query).fetchone() is not None:
            assert time.monotonic() < deadline, "a killed driver still holds its connection"
