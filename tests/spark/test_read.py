"""Tables of the engine as DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from menzil.model.errors import UsageError
from menzil.spark import explain, read
from menzil.spark.source.relations import RELATIONS
from tests.spark import stock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def conn(db: str) -> Iterator[stock.Conn]:
    with psycopg.connect(db, autocommit=True) as conn:
        yield conn


@pytest.mark.usefixtures("compiled")
def test_every_relation_arrives_with_every_column_and_row(spark: SparkSession, db: str, conn: stock.Conn) -> None:
    stock.used(conn)
    stock.archive(conn, 50, first=100)
    for name, relation in RELATIONS.items():
        there = conn.execute(
            "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped",
            (f"menzil.{name}",),
        )
        assert {column.name for column in relation.columns} == {row[0] for row in there}
        columns = ", ".join(column.expression for column in relation.columns)
        wanted = conn.execute(f"select {columns} from menzil.{name}".encode()).fetchall()
        found = read(spark, db, name).collect()
        assert name == "schedules" or found, name
        assert sorted(map(repr, map(tuple, found))) == sorted(map(repr, map(plain, wanted))), name


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """As Spark gives them: timestamps of the local zone without one, bytes as bytearrays."""
    return tuple(value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) else value for value in row)


@pytest.mark.usefixtures("compiled")
def test_filters_go_to_postgresql_and_leave_other_months_alone(spark: SparkSession, db: str, conn: stock.Conn) -> None:
    stock.archive(conn, 300)
    where = "created_at >= '2026-02-01' and created_at < '2026-03-01' and status = 'failed' and payload like '%körper%'"
    frame = read(spark, db, columns=["id", "status"], where=where)
    wanted = conn.execute(
        f"select id, status from menzil.archive where {where.replace('payload', 'payload::text')}".encode()
    )
    rows = sorted(map(tuple, frame.collect()))
    assert rows == sorted(wanted.fetchall())
    assert rows
    assert frame.rdd.getNumPartitions() == 1
    assert read(spark, db, columns=["id"], numPartitions=6).rdd.getNumPartitions() >= 3
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Filter (" not in plan, plan


def test_a_session_without_pushdown_reads_the_same(spark: SparkSession, db: str, conn: stock.Conn) -> None:
    stock.archive(conn, 100)
    where = "priority in (1, 2) and ordering_key is not null"
    with_it = sorted(row.id for row in read(spark, db, columns=["id"], where=where).collect())
    spark.conf.set(PUSHDOWN, "false")
    try:
        without = sorted(row.id for row in read(spark, db, columns=["id"], where=where).collect())
    finally:
        spark.conf.set(PUSHDOWN, "true")
    assert without == with_it
    assert with_it


@pytest.mark.usefixtures("compiled")
def test_sql_reads_through_a_view(spark: SparkSession, db: str, conn: stock.Conn) -> None:
    stock.archive(conn, 20)
    password = conninfo_to_dict(db)["password"]
    spark.sql(f"create or replace temporary view history using menzil options (dsn '{db}', table 'archive')")
    frame = spark.sql("select status, count(*) as n from history where id <= 10 group by status order by 1")
    assert [tuple(row) for row in frame.collect()] == [("completed", 9), ("failed", 1)]
    for mode in ("simple", "extended", "formatted", "codegen"):
        assert password not in frame._sc._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode)
    assert password not in spark.sql("describe extended history").toPandas().to_string()


def test_all_tasks_see_the_moment_of_the_plan(spark: SparkSession, db: str, conn: stock.Conn) -> None:
    stock.archive(conn, 90)
    frame = read(spark, db, columns=["id"], numPartitions=3)
    planned = frame.rdd  # planned here, read below
    assert planned.getNumPartitions() == 3
    stock.archive(conn, 90, first=1000)
    assert planned.count() == 90
    (snapshot,) = conn.execute("select pg_current_snapshot()::text").fetchone() or ()
    stock.archive(conn, 90, first=2000)
    assert read(spark, db, columns=["id"], snapshot=snapshot).count() == 180
    assert read(spark, db, columns=["id"]).count() == 270


def test_a_month_that_is_dropped_while_it_is_read_is_an_error_and_no_gap(
    spark: SparkSession, db: str, conn: stock.Conn
) -> None:
    stock.archive(conn, 30)
    planned = read(spark, db, columns=["id"]).rdd
    assert planned.getNumPartitions() == 3
    stock.drop_january(conn)
    with pytest.raises(Exception, match="dropped") as caught:
        planned.count()
    assert explain(caught.value).message == "A month of the archive was dropped while it was read."


def test_a_history_from_another_server_is_read_whole(spark: SparkSession, db: str, conn: stock.Conn) -> None:
    stock.archive(conn, 10)
    conn.execute("update menzil.done set ended_xid = '9000000000'")  # as after a restore from a dump
    assert read(spark, db, columns=["id"]).count() == 10


def test_the_role_of_the_pipeline_may_read_everything(spark: SparkSession, db: str, conn: stock.Conn) -> None:
    stock.used(conn)
    conn.execute("create role reader login password 'canary' in role menzil_pipeline")
    try:
        dsn = make_conninfo(db, user="reader", password="canary")
        for name in RELATIONS:
            read(spark, dsn, name).count()
    finally:
        conn.execute("drop role reader")


def test_what_cannot_be_read_is_said_before_anything_runs(spark: SparkSession, db: str) -> None:
    with pytest.raises(UsageError, match="There is no relation letters"):
        read(spark, db, "letters")
    with pytest.raises(UsageError, match="archive has no column colour"):
        read(spark, db, columns=["colour"])
    with pytest.raises(Exception, match="priority is smallint") as caught:
        spark.read.format("menzil").option("dsn", db).schema("priority bigint").load().collect()
    assert explain(caught.value).message == "archive.priority is smallint, not bigint."
