"""Others commit to the same lake at the same time: nothing is lost, nothing is twice, and a drop holds it still."""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from menzil.spark import lake
from menzil.spark.jobs import export as export_job
from menzil.spark.jobs import export_drop
from menzil.spark.jobs.export import export
from menzil.spark.lake import commit
from menzil.spark.lake.table import open_lake
from tests.spark.lake_history import (
    DECEMBER,
    JANUARY,
    archived,
    event_lines,
    fill,
    in_database,
    in_lake,
    lines_in_lake,
)

pytestmark = pytest.mark.slow

compact_module = importlib.import_module("menzil.spark.lake.compact")  # the package has a function of that name

FEW = pytest.param(2, id="a few")
#: `pytest -n 0 -s -m torture tests/spark/test_lake_conflicts.py` tells each round; MENZIL_LAKE_ROUNDS says how many.
MANY = pytest.param(
    int(os.environ.get("MENZIL_LAKE_ROUNDS", "50")), id="many", marks=[pytest.mark.torture, pytest.mark.timeout(3600)]
)


@pytest.fixture
def _unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the lock of the lake, which saves work and carries no correctness."""

    @contextmanager
    def alone(dsn: str, root: str) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(dsn, autocommit=True) as conn:
            yield conn

    monkeypatch.setattr(export_job, "_alone", alone)


@pytest.mark.usefixtures("_unlocked")
@pytest.mark.parametrize("rounds", [FEW, MANY])
def test_of_two_exports_of_the_same_messages_one_counts_and_the_other_leaves_nothing(
    spark: SparkSession, db: str, tmp_path: Path, rounds: int
) -> None:
    began = time.monotonic()
    for number in range(rounds):
        fill(db, 16 * number + 2, 16 * number + 16, step=2)
        others = []

        def meanwhile(step: str, month: str, rows: int, others: list[Any] = others) -> None:
            if step == "commit" and not others:
                others.append(None)
                others[0] = export(spark, db, tmp_path)

        report = export(spark, db, tmp_path, progress=meanwhile)
        assert (report.rows, others[0].rows) == (0, 8)
        assert in_lake(tmp_path) == in_database(db)
        print(f"round {number + 1} of {rounds}, {time.monotonic() - began:.0f} s", flush=True)
    assert lines_in_lake(tmp_path) == event_lines(db)
    named = {*lake.files(tmp_path), *lake.files(tmp_path, table="events")}
    assert named == {str(path) for path in tmp_path.rglob("*.parquet")}, "the files of the loser are gone"
    assert lake.verify(tmp_path, db, spark=spark).problems == ()


@pytest.mark.usefixtures("_unlocked")
@pytest.mark.parametrize("rounds", [FEW, MANY])
def test_an_export_and_a_compaction_at_once_lose_nothing(
    spark: SparkSession, db: str, tmp_path: Path, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, 2, 16, step=2)
    export(spark, db, tmp_path)
    real, first, began = compact_module.prove, 18, time.monotonic()
    for number in range(rounds):
        fill(db, first, first + 14, step=2)
        export(spark, db, tmp_path)  # so that there are neighbours to put together
        fill(db, first + 16, first + 30, step=2)
        first += 32
        done: list[int] = []
        if number % 2:

            def meanwhile(step: str, month: str, rows: int, done: list[int] = done) -> None:
                if step == "commit" and not done:
                    done.append(1)
                    done.append(lake.compact(spark, tmp_path, db).before)

            assert export(spark, db, tmp_path, progress=meanwhile).rows == 8
        else:

            def between(*given: Any, done: list[int] = done) -> None:
                real(*given)
                if not done:
                    done.append(1)
                    done.append(export(spark, db, tmp_path).rows)

            monkeypatch.setattr(compact_module, "prove", between)
            assert lake.compact(spark, tmp_path, db).before > 0
            monkeypatch.setattr(compact_module, "prove", real)
        assert done[1] > 0, "the other one worked in between"
        assert in_lake(tmp_path) == in_database(db)
        print(f"round {number + 1} of {rounds}, {time.monotonic() - began:.0f} s", flush=True)
    assert lake.verify(tmp_path, db, spark=spark).problems == ()


def test_a_commit_waits_for_the_drop_of_a_month_and_one_that_came_before_has_it_proved_again(
    spark: SparkSession, db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, 1, 8)
    export(spark, db, tmp_path)
    proved: list[str] = []
    held: list[float] = []
    hold, prove = export_drop._hold, export_drop._prove

    def someone(key: str) -> None:
        commit.remember(open_lake(tmp_path, db), "messages", {key: "x"})
        held.append(time.monotonic())

    waiting = threading.Thread(target=someone, args=("waited",))

    def proving(spark: SparkSession, lake: Any, month: str) -> None:
        proved.append(month)
        prove(spark, lake, month)

    def holding(conn: psycopg.Connection[Any], lake: Any) -> None:
        if not held:
            someone("came-before")  # the pointer is no longer at what was proved
        hold(conn, lake)
        if len(held) == 1 and not waiting.ident:
            waiting.start()
            blocked(db)

    monkeypatch.setattr(export_drop, "_hold", holding)
    monkeypatch.setattr(export_drop, "_prove", proving)
    report = export(spark, db, tmp_path, drop=True)
    dropped = time.monotonic()
    waiting.join(30)
    assert report.dropped == [DECEMBER, JANUARY]
    assert proved[:2] == [DECEMBER, DECEMBER], "proved again, since the pointer had moved"
    assert archived(db) == 0
    assert len(held) == 2
    assert held[1] < dropped
    properties = open_lake(tmp_path, db).tables["messages"].properties
    assert (properties["came-before"], properties["waited"]) == ("x", "x")
    assert set(in_lake(tmp_path)) == set(range(1, 9))
    # The state that was proved stays readable whatever happens later, under its name.
    assert lake.read(spark, tmp_path, snapshot=f"menzil-proved-{DECEMBER}").count() == 8


def blocked(dsn: str, patience: float = 30.0) -> None:
    """Until somebody waits for the pointer of the table."""
    deadline = time.monotonic() + patience
    query = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%iceberg_tables%'"
    with psycopg.connect(dsn, autocommit=True) as conn:
        while conn.execute(query).fetchone() is None:
            assert time.monotonic() < deadline, "nobody waits"
            time.sleep(0.01)
