"""Export to a lake: complete, verified, repeatable after a crash anywhere, and nothing leaves the database unproved."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import psycopg
import pyarrow.dataset
import pyarrow.parquet
import pytest
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import SparkSession

from menzil.spark import lake
from menzil.spark.jobs.export import export
from menzil.spark.lake import LakeDamagedError, layout
from menzil.spark.lake.manifest import Manifest
from tests.spark.lake_history import DECEMBER, JANUARY, fill, in_database, in_lake

pytestmark = pytest.mark.slow


class Crash(BaseException):
    """What a kill does, without the wait for another JVM: no handler of ours catches it."""


def crash_at(step: str):
    def progress(now: str, month: str, rows: int) -> None:
        if now == step:
            raise Crash(step)

    return progress


def archived(dsn: str) -> int:
    with psycopg.connect(dsn) as conn:
        return conn.execute("select count(*) from menzil.archive").fetchone()[0]


def test_the_lake_equals_the_archive_row_by_row_and_every_tool_can_read_it(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    fill(db)
    report = export(spark, db, tmp_path, run_id="first")
    expected = in_database(db)
    assert report.rows == len(expected) == 60
    found = in_lake(spark, tmp_path)
    assert found == expected
    checked = lake.verify(tmp_path, db, spark=spark)
    assert checked.problems == ()
    assert checked.rows == 60
    password = conninfo_to_dict(db)["password"].encode()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and password in path.read_bytes()]

    plain = spark.read.parquet(str(tmp_path / "data"))
    assert plain.count() == 60
    assert {"year", "month", "endpoint"} <= set(plain.columns)
    table = pyarrow.dataset.dataset(str(tmp_path / "data"), partitioning="hive").to_table()
    assert sorted(table["id"].to_pylist()) == sorted(expected)
    frame = pyarrow.parquet.read_table(lake.files(tmp_path)[0]).to_pandas()
    assert set(frame["channel"]) <= {row["channel"] for row in expected.values()}
    directories = {path.parent.name for path in (tmp_path / "data").rglob("*.parquet")}
    assert directories == {f"endpoint={layout.directory(row['channel'])}" for row in expected.values()}
    for path in lake.files(tmp_path):
        about = pyarrow.parquet.ParquetFile(path).metadata
        assert about.row_group(0).column(0).compression == "ZSTD"


def test_a_second_run_exports_only_what_is_new_and_a_repeated_one_nothing(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    fill(db, 1, 20)
    export(spark, db, tmp_path, run_id="first")
    fill(db, 21, 30)
    assert export(spark, db, tmp_path, run_id="first").rows == 0
    assert export(spark, db, tmp_path, run_id="second").rows == 10
    assert in_lake(spark, tmp_path) == in_database(db)

    # The two runs left two files in each partition: together they are one.
    before = lake.files(tmp_path)
    report = lake.compact(spark, tmp_path)
    assert report.after < report.before
    assert set(lake.files(tmp_path)).isdisjoint(before)
    assert in_lake(spark, tmp_path) == in_database(db)
    assert all(Path(path).exists() for path in before), "readers that began before go on reading"
    assert lake.verify(tmp_path, db, spark=spark).problems == ()
    assert lake.compact(spark, tmp_path, grace=timedelta(0)).removed == len(before)
    assert spark.read.parquet(str(tmp_path / "data")).count() == 30


def test_a_run_that_crashes_at_every_step_leaves_nothing_half_and_ends_exact(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    fill(db, 1, 24)
    whole = in_database(db)
    for step in ("write", "verify", "prepare"):
        with pytest.raises(Crash, match=step):
            export(spark, db, tmp_path, run_id="torn", progress=crash_at(step))
        assert in_lake(spark, tmp_path) == {}
    # December is prepared: this run publishes it, then January, and falls before it has cleaned up.
    with pytest.raises(Crash, match="publish"):
        export(spark, db, tmp_path, run_id="torn", progress=crash_at("publish"))
    assert in_lake(spark, tmp_path) == whole
    assert export(spark, db, tmp_path, run_id="torn").rows == 0
    assert in_lake(spark, tmp_path) == whole

    fill(db, 25, 30)
    more = in_database(db)
    with pytest.raises(Crash, match="move"):  # verified files lie among the others, and do not count yet
        export(spark, db, tmp_path, run_id="more", progress=crash_at("move"))
    assert in_lake(spark, tmp_path) == whole
    assert archived(db) == len(more) == 30
    with pytest.raises(Crash, match="drop"):
        export(spark, db, tmp_path, run_id="more", drop=True, progress=crash_at("drop"))
    assert archived(db) == 15
    assert export(spark, db, tmp_path, run_id="more", drop=True).dropped == [JANUARY]
    assert archived(db) == 0
    assert in_lake(spark, tmp_path) == more
    again = export(spark, db, tmp_path, run_id="more", drop=True)
    assert (again.rows, again.dropped) == (0, [])
    assert [path for path in (tmp_path / "_tmp").rglob("*") if path.is_file()] == []


def test_a_message_that_ends_between_export_and_drop_keeps_its_month(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    fill(db, 1, 10)

    def end_one_more(step: str, month: str, rows: int) -> None:
        if (step, month) == ("publish", DECEMBER):
            fill(db, 12, 12)

    report = export(spark, db, tmp_path, drop=True, progress=end_one_more)
    assert {each.month: each.drop for each in report.months} == {DECEMBER: "changed", JANUARY: "dropped"}
    assert archived(db) == 6
    report = export(spark, db, tmp_path, drop=True)
    assert (report.rows, report.dropped) == (1, [DECEMBER])
    assert set(in_lake(spark, tmp_path)) == {*range(1, 11), 12}

    # A month made again by a late message has only that one; it may leave too.
    fill(db, 14, 14)
    assert export(spark, db, tmp_path, drop=True).dropped == [DECEMBER]
    assert set(in_lake(spark, tmp_path)) == {*range(1, 11), 12, 14}


def test_a_month_with_a_live_message_is_exported_but_not_dropped(spark: SparkSession, db: str, tmp_path: Path) -> None:
    fill(db, 1, 4)
    with psycopg.connect(db) as conn:
        conn.execute("select menzil.send('partner', '{}')")
        conn.execute("update menzil.message set created_at = '2024-12-05 00:00+00'")
    report = export(spark, db, tmp_path, drop=True)
    assert {each.month: (each.is_open, each.drop) for each in report.months} == {
        DECEMBER: (True, None),
        JANUARY: (False, "dropped"),
    }
    assert archived(db) == 2


def _delete(path: Path) -> None:
    path.unlink()


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _change(path: Path) -> None:
    """One value of one row, in a file of the same size as the manifest says."""
    table = pyarrow.parquet.read_table(path)
    names = table.column_names
    statuses = ["expired" for _ in range(table.num_rows)]
    changed = table.set_column(names.index("status"), table.schema.field("status"), pyarrow.array(statuses))
    pyarrow.parquet.write_table(changed, path, compression="zstd")


@pytest.mark.parametrize("harm", [_delete, _truncate, _change])
def test_damage_to_a_published_file_is_found_and_nothing_is_dropped(
    spark: SparkSession, db: str, tmp_path: Path, harm
) -> None:
    fill(db, 1, 8)
    export(spark, db, tmp_path)
    victim = Path(lake.files(tmp_path)[0])
    harm(victim)
    if harm is _change:  # so that its size does not give it away
        _pretend(tmp_path, victim)
    problems = lake.verify(tmp_path, spark=spark).problems
    assert len(problems) == 1
    assert victim.name in problems[0]
    with pytest.raises(LakeDamagedError, match="stays in the database"):
        export(spark, db, tmp_path, drop=True)
    assert archived(db) == 8


def _pretend(place: Path, victim: Path) -> None:
    for path in (place / "_manifest").glob("*.json"):
        manifest = Manifest.decode(path.read_bytes())
        files = tuple(
            dataclasses.replace(file, size=victim.stat().st_size) if file.path.endswith(victim.name) else file
            for file in manifest.files
        )
        path.write_bytes(dataclasses.replace(manifest, files=files).encode())


_KILLED = """
import os, signal, sys
from menzil.spark.session import get_session
from menzil.spark.jobs.export import export
seen = 0
def progress(step, month, rows):
    global seen
    seen += 1
    print(step, month, flush=True)
    if seen == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
spark = get_session("killed", "local[2]", quick=True)
export(spark, os.environ["MENZIL_DSN"], sys.argv[1], run_id="killed", progress=progress)
"""


def test_a_driver_that_is_killed_is_finished_by_the_next_run(spark: SparkSession, db: str, tmp_path: Path) -> None:
    fill(db, 1, 12)
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path / "lake"), "5"],
        env=os.environ | {"MENZIL_DSN": db},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout.splitlines()[-1] == f"move {DECEMBER}"
    assert in_lake(spark, tmp_path / "lake") == {}
    command = [
        sys.executable,
        "-m",
        "menzil",
        "pipeline",
        "export",
        "--lake",
        str(tmp_path / "lake"),
        "--dsn",
        db,
        "--json",
    ]
    plan = json.loads(_said([*command, "--run-id", "killed", "--drop"]))
    assert [each["month"] for each in plan["plan"]["months"]][:2] == [DECEMBER, JANUARY]
    assert plan["done"] is None
    assert archived(db) == 12
    done = json.loads(_said([*command, "--run-id", "killed", "--drop", "--yes"]))["done"]
    assert [(each["month"], each["drop"]) for each in done["months"]] == [(DECEMBER, "dropped"), (JANUARY, "dropped")]
    assert set(in_lake(spark, tmp_path / "lake")) == set(range(1, 13))
    assert archived(db) == 0


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=True).stdout


@pytest.mark.torture
def test_millions_of_messages_leave_with_a_driver_of_one_gigabyte(spark: SparkSession, db: str, tmp_path: Path) -> None:
    count = int(os.environ.get("MENZIL_LAKE_ROWS", "5000000"))
    fill(db, 1, count)
    assert spark.conf.get("spark.driver.memory") == "1g"
    report = export(spark, db, tmp_path, drop=True)
    assert report.rows == count
    assert report.dropped == [DECEMBER, JANUARY]
    assert archived(db) == 0
    assert lake.read(spark, tmp_path).selectExpr("count(*)", "count(distinct id)", "min(id)", "max(id)").first() == (
        count, count, 1, count,
    )  # fmt: skip
    assert lake.verify(tmp_path, db, spark=spark).problems == ()
