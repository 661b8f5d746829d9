"""A history that lives only in the lake: exported, dropped, sent once more from there, and audited there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

import menzil
from menzil.spark import lake
from menzil.spark.jobs.audit import audit
from menzil.spark.jobs.export import export
from menzil.spark.jobs.replay import replay
from tests.spark import archiving
from tests.spark.lake_history import archived

pytestmark = pytest.mark.slow

COUNT, DEAD = 60, 6
_COLUMNS = """id, status, channel, priority, num_attempts, retry_count, created_at, first_leased_at, leased_at,
  ended_at, ended_xid, payload, last_error"""
#: Each had one try; every tenth failed for good, and has left the dead letters again.
_ROWS = """
select g, case when g %% 10 = 0 then 'failed' else 'completed' end, 'parcels', 0, 1, 0, at, at + interval '1 ms',
       at + interval '1 ms', at + interval '9 ms', pg_current_xact_id(), jsonb_build_object('n', g),
       case when g %% 10 = 0 then '[PERMANENT] too heavy' end
  from generate_series(1, 60) g cross join lateral (select timestamptz '2026-03-01Z' + g * interval '1 min' as at) t"""
_TRIES = """
insert into menzil.attempt (message_id, attempt, channel_id, outcome, leased_at, ended_at, error)
select a.id, 1, c.id, 'failed', a.leased_at, a.ended_at, a.last_error
  from menzil.archive a join menzil.channel c on c.name = a.channel where a.status = 'failed'"""


def test_what_the_database_has_dropped_is_replayed_from_the_lake_and_audited_there(
    spark: SparkSession, db: str, tmp_path: Path
) -> None:
    place = tmp_path / "lake"
    with menzil.Menzil(db) as mq, psycopg.connect(db, autocommit=True) as conn:
        mq.channel_set("parcels")
        conn.execute("select menzil._make_archive_month('2026-03-01Z')")
        archiving.archive(conn, _COLUMNS, _ROWS, {})
        conn.execute(_TRIES)
        assert export(spark, db, place, drop=True).dropped == ["2026-03"]
        assert archived(db) == 0, "the history is in the lake and nowhere else"

        asked: dict[str, Any] = {"run_id": "lighter", "endpoint": "parcels", "status": "failed"}
        for repeated in (False, True):
            done = replay(spark, db, str(place), **asked)
            assert (done.messages, done.repeated) == (DEAD, repeated)
        taken = mq.dequeue(limit=COUNT, channels="parcels")
        assert [one.payload for one in taken] == [{"n": n} for n in range(10, COUNT + 1, 10)]
        mq.complete_many(taken)

        # Their originals are found, though the database has forgotten them.
        assert export(spark, db, place).rows == DEAD
        told = audit(spark, str(place))
        assert told.counts["ended"] == COUNT + DEAD
        assert [check.kind for check in told.checks if check.violations] == []
        origins = lake.read(spark, place).where("replay_of is not null").select("replay_of").collect()
        assert sorted(row.replay_of for row in origins) == list(range(10, COUNT + 1, 10))
