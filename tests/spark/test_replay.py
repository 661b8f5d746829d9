"""Messages of the lake are sent once more: which ones, in which order, at which pace, and once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded
from menzil.model.errors import DisabledError, MenzilError
from tests.conftest import database
from tests.spark import stock
from tests.sql.queue import Queue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 600


@pytest.mark.parametrize("rows", [7, 1_000_000])
def test_places_are_exact_however_many_ranges_there_are(spark: SparkSession, rows: int) -> None:
    from pyspark.sql.functions import expr, timestamp_micros

    from menzil.spark.jobs.order import in_order

    # Many created in the same moment, as those of one bulk send are: the id decides among them.
    shuffled = spark.range(0, 500, 1, 4).selectExpr("(id * 7919) % 500 as id")
    frame = shuffled.withColumn("created_at", timestamp_micros(expr("id div 90")))
    found = in_order(frame, 500, rows=rows).selectExpr("spark_partition_id() as part", "id", "_place").collect()
    assert [row["_place"] for row in found] == list(range(1, 501))
    assert [row["id"] for row in found] == list(range(500))
    assert len({row["part"] for row in found}) <= max(1, min(256, 500 // rows))


@pytest.fixture(scope="module")
def exported(
    server: Embedded, _installed: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """A database and a lake with its archive: three months, five channels, every tenth message failed."""
    from menzil.spark.jobs.export import export

    lake = str(tmp_path_factory.mktemp("replay") / "lake")
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(f"create database replayed template {_installed}")
        dsn = make_conninfo(server.dsn, dbname="replayed")
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("select menzil.adopt()")
            stock.archive(conn, ROWS)
            conn.execute("select menzil.channel_release('c4')")  # it is gone, its history is not
        export(spark, dsn, lake)
        yield dsn, lake
        admin.execute("drop database replayed with (force)")


def test_a_plan_says_how_many_to_whom_and_how_long_and_sends_nothing(
    spark: SparkSession, exported: tuple[str, str]
) -> None:
    from menzil.spark.jobs.replay import plan_replay, replay

    dsn, lake = exported
    plan = plan_replay(spark, dsn, lake, run_id="look", endpoint=["c1", "c4"], rate=10)
    assert (plan.messages, plan.seconds, plan.already_sent) == (240, 24.0, None)
    assert [(share.endpoint, share.messages) for share in plan.endpoints] == [("c1", 120), ("c4", 120)]
    assert plan.endpoints[0].oldest == datetime(2026, 1, 3, tzinfo=UTC) + timedelta(milliseconds=6)
    assert plan.closed == ["There is no channel or endpoint named 'c4'."]
    with pytest.raises(DisabledError, match="named 'c4'"):
        replay(spark, dsn, lake, run_id="look", endpoint=["c1", "c4"])
    # One that is misspelled has no messages, and would be left out without a word.
    with pytest.raises(DisabledError, match="named 'c11'"):
        replay(spark, dsn, lake, run_id="look", endpoint=["c1", "c11"])
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select count(*) from menzil.queue").fetchone() == (0,)


@pytest.mark.usefixtures("compiled")
def test_what_is_replayed_is_new_keeps_what_it_was_and_comes_once(
    spark: SparkSession, exported: tuple[str, str]
) -> None:
    from menzil.spark.jobs.replay import replay

    dsn, lake = exported
    # February: those with n % 3 = 1, and of them the ones whose payload says so, or that have bytes.
    said: dict[str, Any] = {
        "run_id": "feb",
        "endpoint": ["c0", "c1", "c2"],
        "start": datetime(2026, 2, 1, tzinfo=UTC),
        "end": datetime(2026, 3, 1, tzinfo=UTC),
        "where": "get_json_object(payload, '$.n') > 100 or content is not null",
        "rate": 4,
    }
    report = replay(spark, dsn, lake, **said)
    with psycopg.connect(dsn, autocommit=True) as conn:
        meant = conn.execute("""
            select channel, payload::text, content, priority, ordering_key, correlation_id, headers::text,
                   metadata::text, id
              from menzil.archive
             where channel in ('c0', 'c1', 'c2') and created_at >= '2026-02-01+00' and created_at < '2026-03-01+00'
               and ((payload ->> 'n')::int > 100 or content is not null) order by created_at, id""").fetchall()
        found = """
            select channel, payload::text, content, priority, ordering_key, correlation_id, headers::text,
                   metadata::text, replay_of
              from menzil.queue order by id"""
        assert conn.execute(found).fetchall() == meant
        assert report.messages == len(meant) > 50
        assert {row[8] % 3 for row in meant} == {1}
        # A quarter of a second between neighbours, whatever their endpoints.
        gaps = conn.execute("""
            select distinct round(extract(epoch from g), 3) from (
              select scheduled_at - lag(scheduled_at) over (order by id) as g from menzil.queue) q
             where g is not null""")
        assert [float(row[0]) for row in gaps] == [0.25]
        clear = "select count(*) from menzil.queue where idempotency_key is not null or expires_at is not null"
        assert conn.execute(clear).fetchone() == (0,)

        again = replay(spark, dsn, lake, **said)
        assert (again.messages, again.repeated) == (len(meant), True)
        assert len(conn.execute(found).fetchall()) == len(meant)
        # Another run id is another replay, and an ended status a filter of its own.
        assert replay(spark, dsn, lake, run_id="other", endpoint="c0", status="failed").messages == ROWS // 10
        conn.execute("select menzil.channel_purge(name) from menzil.channels")


def test_a_replay_that_makes_no_sense_is_refused_in_a_sentence(
    spark: SparkSession, exported: tuple[str, str], tmp_path: Path
) -> None:
    from menzil.spark.jobs.replay import plan_replay

    dsn, lake = exported
    late, early = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    for wrong, sentence in [
        ({"where": "colour = 1"}, "colour"),
        ({"where": "status = = 1"}, "yntax error at or near '='"),
        ({"start": late, "end": early}, "ends before it begins"),
        ({"status": "lost"}, "not a status"),
        ({"rate": 0}, "more than 0"),
        ({"rate": 1e-9}, "ten years"),
    ]:
        with pytest.raises(MenzilError, match=sentence) as refused:
            plan_replay(spark, dsn, lake, run_id="x", **wrong)
        assert "\n" not in refused.value.message
        assert "SQLSTATE" not in refused.value.message


@pytest.fixture
def other(server: Embedded, _installed: str) -> Iterator[str]:
    """Another database with menzil."""
    with database(server, "replayed_elsewhere", _installed) as dsn:
        yield dsn


def test_what_was_erased_is_not_sent_again_though_the_lake_has_it(
    spark: SparkSession, work: str, other: str, tmp_path: Path
) -> None:
    from menzil.spark.jobs.export import export
    from menzil.spark.jobs.replay import plan_replay, replay

    lake = str(tmp_path / "lake")
    with psycopg.connect(work, autocommit=True) as conn:
        queue = Queue(conn)
        ids = [queue.send("work", {"n": n}) for n in range(5)]
        queue.complete(*queue.dequeue(5))
        queue.call("message_erase", ids[0])  # the lake gets it without a body
        assert export(spark, work, lake).rows == 5
        queue.call("message_erase", ids[1])  # known to the database alone

        plan = plan_replay(spark, work, lake, run_id="again")
        assert (plan.messages, plan.erased) == (3, 2)
        # In another database the same id is another message; what the event log of the lake says holds everywhere.
        with psycopg.connect(other, autocommit=True) as elsewhere:
            Queue(elsewhere).call("channel_set", "work")
            elsewhere.execute("select menzil._event('message.erased', 'message', %s::text, null, null)", (ids[2],))
        assert plan_replay(spark, other, lake, run_id="again").erased == 1

        export(spark, work, lake)
        conn.execute("delete from menzil.event")
        assert replay(spark, work, lake, run_id="again").messages == 3
        assert [row.replay_of for row in queue.all("select replay_of from menzil.queue order by id")] == ids[2:]
        # A lake that began after the log was cleaned up has nothing but messages without a body.
        younger = str(tmp_path / "younger")
        export(spark, work, younger)
        assert replay(spark, work, younger, run_id="once more").messages == 3
