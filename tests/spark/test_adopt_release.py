"""A lake that release 0.1.0 itself has written, adopted after the upgrade of its database."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from menzil.install import migrate
from menzil.spark import lake
from menzil.spark.jobs.export import export
from menzil.spark.jobs.replay import replay
from menzil.spark.lake.adopt import adopt
from tests.integration.install.old_release import RELEASE, unpack_package
from tests.spark.lake_history import in_database, in_lake

# 0.1.0 needs a Spark of its own; tests/spark/test_adopt.py adopts a lake of the same format in every run.
pytestmark = [pytest.mark.torture, pytest.mark.timeout(900)]

#: Ended messages as 0.1.0 kept them, in two months: every seventh after a failed try, with texts of all sorts.
_MESSAGES = """
insert into menzil.archive (id, status, channel, endpoint_id, priority, num_attempts, retry_count, created_at,
  first_leased_at, leased_at, ended_at, ended_xid, worker, payload, payload_hash, correlation_id, response, headers)
select g, 'completed', c.name, c.id, g % 5, 1 + (g % 7 = 0)::integer, (g % 7 = 0)::integer, at, at, at,
       at + interval '0.25 s', pg_current_xact_id(), 'worker ' || chr(252),
       jsonb_build_object('order', g, 'text', repeat('Ω"\\', g % 4)), md5(g::text), gen_random_uuid(),
       case when g % 3 > 0 then '{"status": 200, "duration_ms": 12.5}'::jsonb end,
       case when g % 4 = 0 then '{"x-trace": "a b"}'::jsonb end
  from generate_series(1, 60) g
  cross join lateral (select '2025-01-20 00:00Z'::timestamptz + g * interval '12 h' as at) t
  join menzil.channel c on c.name = case when g % 2 = 0 then 'even' else 'odd one' end"""
_TRIES = """
insert into menzil.attempt (message_id, attempt, channel_id, outcome, leased_at, ended_at, worker, error)
select a.id, 1, a.endpoint_id, 'failed', a.created_at, a.created_at, 'worker', 'HTTP 503'
  from menzil.archive a where a.num_attempts = 2"""
_EXPORT = """
import sys
from menzil.spark import get_session
from menzil.spark.jobs.export import export
spark = get_session(quick=True)
print(export(spark, sys.argv[1], sys.argv[2], run_id="first").rows)
spark.stop()
"""


def test_what_0_1_0_exported_is_adopted_verified_continued_and_replayed(
    spark: SparkSession, fresh_db: str, tmp_path: Path
) -> None:
    release = unpack_package(tmp_path / "release", RELEASE)
    migrate(fresh_db, root=release / "menzil/sql")
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        for name in ("even", "odd one"):
            conn.execute("select menzil.channel_set(%s)", (name,))
        for month in ("2025-01-01 00:00Z", "2025-02-01 00:00Z"):
            conn.execute("select menzil._make_archive_month(%s)", (month,))
        conn.execute(_MESSAGES)
        conn.execute(_TRIES)
    place = tmp_path / "lake"
    done = subprocess.run(
        [sys.executable, "-c", _EXPORT, fresh_db, str(place)], env=os.environ | {"PYTHONPATH": str(release)},
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stdout.strip().endswith("60"), done.stderr[-2000:]
    written = {path: path.stat().st_mtime_ns for path in place.rglob("*.parquet")}

    migrate(fresh_db)
    whole = in_database(fresh_db)
    assert len(whole) == 60
    assert adopt(spark, place, fresh_db).rows == 60
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert lake.verify(place, fresh_db, spark=spark).problems == ()
    assert in_lake(place) == whole
    assert export(spark, fresh_db, place).rows == 0
    assert export(spark, fresh_db, place, drop=True).dropped == ["2025-01", "2025-02"]
    assert lake.verify(place, fresh_db, spark=spark).problems == ()
    assert in_lake(place) == whole

    sent = replay(spark, fresh_db, str(place), run_id="again", endpoint="even")
    assert sent.messages == 30
    with psycopg.connect(fresh_db) as conn:
        found = conn.execute("select count(*), count(distinct replay_of) from menzil.queue").fetchone()
    assert found == (30, 30)
