"""Spark asks for the database as everything else does, and its tasks get the whole answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import menzil
from menzil.embedded import Embedded
from menzil.model.errors import MenzilError
from menzil.ops import looking
from menzil.ops.choosing import LIBPQ_VARIABLES
from menzil.spark import read
from menzil.spark.database import for_driver, for_source
from menzil.spark.jobs.export import export
from menzil.spark.jobs.fanout import fanout
from menzil.spark.jobs.replay import replay
from menzil.spark.session import explain
from menzil.spark.source.door import ask
from tests.sql.queue import Queue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMES = {"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER", "password": "PGPASSWORD"}


@pytest.fixture(autouse=True)
def _nothing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("MENZIL_DSN", "PGPASSWORD", *LIBPQ_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MENZIL_PG_DIR", "/nonexistent")


def test_a_frame_is_read_and_sent_where_the_variable_points(
    spark: SparkSession, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENZIL_DSN", db)
    with menzil.Menzil() as mq:
        mq.channel_set("billing")
        mq.send("billing", {"order": 1})
    assert read(spark, table="queue", columns=["channel"]).collect() == [("billing",)]

    at = conninfo_to_dict(db)
    # The URL of an engine, with a server that is not there before the one that is.
    several = (
        f"postgresql+psycopg://{at['user']}:{at['password']}@/{at['dbname']}"
        f"?host=127.0.0.1:1&host={at['host']}:{at['port']}&target_session_attrs=read-write"
    )
    rows = spark.createDataFrame([("2",)], "payload string")
    rows.write.format("menzil").option("dsn", several).option("endpoint", "billing").mode("append").save()
    assert read(spark, several, "queue", columns=["channel"]).count() == 2


def test_a_frame_from_a_database_that_is_not_there_says_which_answer_chose_it(
    spark: SparkSession, server: Embedded
) -> None:
    missing = make_conninfo(server.dsn, dbname="shop")
    with pytest.raises(Exception) as failed:  # noqa: PT011  # Java's, which explain() reads
        read(spark, missing, "queue").collect()
    told = str(explain(failed.value))
    assert "createdb shop" in told
    assert "chosen by the option dsn" in told


def test_tasks_on_other_machines_get_what_the_driver_had_in_its_environment(
    db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = conninfo_to_dict(db)
    for name, value in at.items():
        monkeypatch.setenv(_NAMES[name], str(value))
    for chosen in (for_driver(None), for_source(None)):
        assert conninfo_to_dict(chosen) == at
        assert chosen.chosen_by == "the variables PGHOST, PGPORT, PGDATABASE, PGUSER"
    # What the argument says itself stays.
    assert conninfo_to_dict(for_source("dbname=other"))["dbname"] == "other"
    assert conninfo_to_dict(for_source("dbname=other"))["host"] == at["host"]


def test_jobs_hand_their_tasks_what_the_driver_alone_has_in_its_environment(
    spark: SparkSession, work: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at = conninfo_to_dict(work)
    for name, value in at.items():
        monkeypatch.setenv(_NAMES[name], str(value))  # Spark's processes have been started without them
    with psycopg.connect(work, autocommit=True) as conn:
        queue = Queue(conn)
        queue.call("create_event_type", "order", None, {"required": ["n"]})
        queue.call("subscribe", "order", "work")
        queue.send("work", {"n": 1})
        queue.complete(queue.lease())
    assert export(spark, "", tmp_path / "lake").rows == 1
    assert replay(spark, "", str(tmp_path / "lake"), run_id="again").messages == 1
    events = spark.createDataFrame([('{"n": 2}',)], "payload string")
    assert fanout(spark, events, "", send_id="orders", event_type="order").messages == 1
    assert read(spark, work, "queue", columns=["channel"]).count() == 2


def test_what_read_chose_for_the_source_keeps_its_name(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENZIL_DSN", db)
    assert for_source(str(for_driver(None))).chosen_by == "the variable MENZIL_DSN"
    assert for_source("dbname=other").chosen_by == "the option dsn"


def test_the_source_says_that_it_starts_no_embedded_server(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("2",)], "payload string")
    writing = rows.write.format("menzil").option("endpoint", "billing").mode("append")
    frame = spark.read.format("menzil").option("table", "queue").load()
    for ask_it in (frame.collect, writing.save):
        with pytest.raises(Exception) as failed:  # noqa: PT011  # Java's, which explain() reads
            ask_it()
        told = str(explain(failed.value))
        assert told.startswith(
            'format("menzil") starts no embedded PostgreSQL, none runs in /nonexistent, and no argum'
        )
        assert "menzil pg start" in told


def test_a_question_of_the_driver_names_the_answer_that_led_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENZIL_DSN", "postgresql://127.0.0.1:1/shop")
    with pytest.raises(MenzilError, match="chosen by the variable MENZIL_DSN"):
        ask(for_source(None), looking.now())
