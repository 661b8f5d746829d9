"""What a reader of the lake cannot mean is refused, and what is there is read whole: never less in silence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from menzil.model.errors import UsageError
from menzil.spark import lake, read
from menzil.spark.jobs.export import export
from menzil.spark.jobs.replay import plan_replay
from menzil.spark.lake.promote import Promoted, values
from menzil.spark.lake.table import open_lake
from menzil.spark.session import explain
from tests.spark.lake_history import DECEMBER, fill, in_database, in_lake
from tests.spark.test_lake_sweep import filled

SPARK: Any = None  # what is refused is refused before Spark is asked
NAIVE = datetime(2025, 3, 1)


@contextmanager
def refused(said: str) -> Iterator[None]:
    with pytest.raises(UsageError) as caught:
        yield
    assert caught.value.message == said


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"channels": "partner"}, "channels is one text, 'partner'."),
        ({"months": "2025-03"}, "months is one text, '2025-03'."),
        ({"months": ["2025-03", "2025-3"]}, "'2025-3' is not a month."),
        ({"months": ["9999-12"]}, "'9999-12' is not a month."),
        ({"start": NAIVE}, "start has no time zone."),
        ({"end": NAIVE}, "end has no time zone."),
    ],
)
def test_a_choice_that_would_find_nothing_or_something_else_is_refused(
    chosen: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with refused(said):
        lake.read(SPARK, tmp_path, **chosen)


def test_months_and_tables_that_do_not_exist_are_refused_where_they_would_mean_no_work(tmp_path: Path) -> None:
    with refused("'2025-3' is not a month."):
        export(SPARK, "", tmp_path, months=["2025-3"])
    with refused("months is one text, '2025-03'."):
        export(SPARK, "", tmp_path, months="2025-03")
    with refused("2345-01 has not begun: there is nothing to export."):
        export(SPARK, "", tmp_path, months=["2025-03", "2345-01"])
    with refused("'March' is not a month."):
        lake.compact(SPARK, tmp_path, "", "March")
    with refused("A lake has no table message."):
        lake.files(tmp_path, table="message")


def test_a_snapshot_that_is_not_there_is_not_an_empty_lake(db: str, tmp_path: Path) -> None:
    filled(tmp_path, db, 2)
    first = open_lake(tmp_path).tables["messages"].metadata.snapshots[0].snapshot_id
    assert len(lake.files(tmp_path, snapshot=first)) == 1
    assert lake.sweep(tmp_path, db, keep=timedelta(0)).snapshots == 1
    for unknown in (first, 5):
        with refused(f"The lake has no snapshot {unknown}."):
            lake.files(tmp_path, snapshot=unknown)


def test_a_lake_whose_path_looks_like_a_pattern_is_read_and_no_other_one(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    for name in ("a[1]", "{b,c}", "d*", "e\\f"):
        filled(tmp_path / name, db, 2)
        frame = lake.read(spark, tmp_path / name)
        assert sorted(row.id for row in frame.select("id").collect()) == [0, 1], name


def test_files_that_are_gone_or_damaged_are_missed_whatever_the_session_ignores(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    filled(tmp_path, db, 2)
    damaged, gone = map(Path, lake.files(tmp_path))
    whole = damaged.read_bytes()
    names = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
    for name in names:
        spark.conf.set(name, "true")
    try:
        damaged.write_bytes(whole[:4] + bytes(len(whole) - 4))
        with pytest.raises(Exception, match=damaged.name) as caught:
            lake.read(spark, tmp_path).select("id").collect()
        assert explain(caught.value).message
        damaged.write_bytes(whole)
        frame = lake.read(spark, tmp_path).select("id")
        gone.unlink()
        with pytest.raises(Exception, match=gone.name):
            frame.collect()
    finally:
        for name in names:
            spark.conf.unset(name)


@pytest.mark.slow
def test_times_are_moments_whatever_a_session_takes_a_timestamp_for(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    fill(db, 1, 12)
    zone = spark.conf.get("spark.sql.session.timeZone")
    assert zone is not None
    turn = datetime(2025, 1, 1, tzinfo=UTC)
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        assert export(spark, db, tmp_path).rows == 12
        frame = lake.read(spark, tmp_path)
        assert {kind for _, kind in frame.dtypes if kind.startswith("time")} == {"timestamp"}
        assert in_lake(tmp_path, spark) == in_database(db)
        assert odd(lake.read(spark, tmp_path, months=[DECEMBER])) == {0}
        assert odd(lake.read(spark, tmp_path, start=turn)) == {1}
        assert plan_replay(spark, db, tmp_path, run_id="r", start=turn).messages == 6
        assert odd(read(spark, db, "archive", where="created_at < '2025-01-01 05:45'")) == {0}
        text = json.dumps({"at": "2025-01-01T01:00:00+01:00"})
        published = spark.createDataFrame([(text, '{"event_type": "order"}')], "payload string, metadata string")
        (row,) = published.select(*values([Promoted("order", "at", "p_at", "timestamp")])).toArrow().to_pylist()
        assert row["p_at"] == turn
        assert lake.verify(tmp_path, db, spark=spark).problems == ()
    finally:
        spark.conf.unset("spark.sql.timestampType")
        spark.conf.set("spark.sql.session.timeZone", zone)


def odd(frame: DataFrame) -> set[int]:
    """Messages with odd ids are January's, the others December's."""
    return {row.id % 2 for row in frame.select("id").collect()}
