"""The role menzil_pipeline is enough for what `menzil pipeline` does with a lake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb
from pyspark.sql import SparkSession

from menzil.spark import lake
from menzil.spark.jobs.audit.sources import opened
from tests.integration.cli.user import User
from tests.sql.queue import Queue

SCHEMA = {"properties": {"amount": {"type": "integer"}}}


@pytest.fixture
def queue(db: str) -> Iterator[Queue]:
    with psycopg.connect(db, autocommit=True) as conn:
        yield Queue(conn)


@pytest.fixture
def role(db: str, queue: Queue) -> Iterator[str]:
    """A connection string of a role that is a member of menzil_pipeline and of nothing else."""
    queue.conn.execute("create role lake_keeper login password 'k' in role menzil_pipeline")
    yield make_conninfo(db, user="lake_keeper", password="k")
    queue.conn.execute("drop role lake_keeper")


@pytest.mark.slow
def test_the_role_of_the_pipeline_exports_verifies_audits_and_replays(
    spark: SparkSession, role: str, queue: Queue, tmp_path: Path
) -> None:
    user, place = User(role), str(tmp_path / "lake")
    queue.call("channel_set", "shop")
    queue.call("create_event_type", "order", None, Jsonb(SCHEMA))
    queue.call("subscribe", "order", "shop")
    # No message is new, so no file gets the column; the lake has it, and fills it from now on without being asked.
    user.gets("pipeline", "export", "--lake", place, "--promote", "order")
    assert "p_amount" in lake.read(spark, place).columns
    queue.call("publish", "order", Jsonb({"amount": 7}))
    queue.complete(queue.lease())
    assert user.gets("pipeline", "export", "--lake", place) == "1"
    assert [row["p_amount"] for row in lake.read(spark, place).collect()] == [7]
    assert "1 message in" in user.types("pipeline", "export", "--lake", place, "--verify").stderr
    with opened(spark, place, role, None, 0.0) as history:
        assert (history.max_retries, history.keeps_completed) == (10, True)

    assert user.gets("pipeline", "replay", "--lake", place, "--run-id", "r", "--all", "--yes") == "1"
