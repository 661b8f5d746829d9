"""A small history with odd values, in two months of two years that are over, and how a lake is compared with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import psycopg
from pyspark.sql import SparkSession

from menzil.spark import lake
from menzil.spark.lake.table import open_lake
from menzil.spark.source.relations import RELATIONS
from tests.spark import archiving

DECEMBER, JANUARY = "2024-12", "2025-01"

_COLUMNS = """id, status, channel, priority, num_attempts, retry_count, created_at, scheduled_at, expires_at,
  first_leased_at, leased_at, ended_at, ended_xid, worker, payload, content, payload_hash, ordering_key,
  idempotency_key, correlation_id, headers, metadata, last_error, state, redrive_of, replay_of, response"""
_FILL = """
select g, case g %% 4 when 0 then 'failed' when 1 then 'expired' else 'completed' end,
       (array['partner', 'Über/ß=%%20 #1', '_hidden', 'x' || repeat('é', 199), '007'])[1 + g %% 5],
       g %% 11, 1 + g %% 4, g %% 4,
       at, case when g %% 3 = 0 then '0001-01-01 00:00:00.000001+00'::timestamptz end,
       case when g %% 3 = 1 then '9999-12-31 23:59:59.999999+00'::timestamptz end,
       at + interval '1 us', at + interval '999999 us', at + g * interval '1.000001 s', pg_current_xact_id(),
       case when g %% 2 = 0 then 'worker ' || chr(31) || chr(30) end,
       case when g %% 7 > 0 then jsonb_build_object('n', g, 'deep',
         '{"a": [1, {"b": null}], "é": "😀\\n\\t\\"", "big": 1e30, "f": 0.10}'::jsonb) end,
       case when g %% 7 = 0 then decode('00ff10', 'hex') when g %% 7 = 1 then ''::bytea end,
       md5(g::text), case g %% 3 when 0 then '' when 1 then 'İstanbul 😀' end,
       case when g %% 5 = 0 then '=key,"quoted"' end,
       case when g %% 2 = 1 then '00000000-0000-4000-8000-000000000001'::uuid end,
       case when g %% 4 = 1 then '{"X": "y"}'::jsonb end, case when g %% 4 = 2 then '[]'::jsonb end,
       case when g %% 4 = 0 then E'line\\nbreak\\\\ "and" ''quotes''' end, case when g %% 6 = 0 then '\\x00'::bytea end,
       case when g %% 9 = 0 then g - 1 end, case when g %% 8 = 0 then g - 1 end,
       (array['{"status": 200, "duration_ms": 12.345678}', '{"status": "204", "duration_ms": "7"}',
              '{"status": "200\\n", "duration_ms": 1e300}',
              '{"status": 99999999999, "duration_ms": -0.5}', '{}', null, '{"status": 2e2, "duration_ms": 1e400}',
              '{"duration_ms": -1e400}', '{"duration_ms": 1e-400}', '{"duration_ms": -1e-322}',
              '{"status": {"a": 1}, "duration_ms": null}', '[200]',
              '{"status": null, "duration_ms": 0.0009999999999999999}', '{"duration_ms": 2.47031e-324}'
             ])[1 + g %% 14]::jsonb
  from generate_series(%(first)s::bigint, %(last)s::bigint, %(step)s::bigint) g
  cross join lateral (select '2024-12-31 23:59:59.999999+00'::timestamptz + (g %% 2) * interval '1 us' as at) t"""

_TRIES = """
insert into menzil.attempt (message_id, attempt, channel_id, outcome, leased_at, ended_at, worker, error, response)
select a.id, n, (select min(id) from menzil.channel), (array['failed', 'deferred', 'recovered'])[1 + n %% 3],
       a.created_at + n * interval '1 ms', a.created_at + n * interval '1.000003 s', a.worker,
       nullif(repeat('e', n::integer - 1), ''),
       case n when 1 then '{"status": 503, "duration_ms": 0.1}' when 2 then '{"duration_ms": 1e400}' end::jsonb
  from menzil.archive a cross join lateral generate_series(1, a.num_attempts - 1) n
 where a.id between %(first)s and %(last)s"""


def fill(dsn: str, first: int = 1, last: int = 60, step: int = 1) -> None:
    """Ended messages with these ids: odd ones of the first microsecond of January, even ones of December's last.

    With an even first id and a step of 2 all of them are December's, and an export has half the jobs.
    """
    with psycopg.connect(dsn) as conn:
        conn.execute("select menzil.channel_set('partner')")
        conn.execute(
            "select menzil._make_archive_month(m::timestamptz) from unnest('{2024-12-01Z, 2025-01-01Z}'::text[]) m"
        )
        archiving.archive(conn, _COLUMNS, _FILL, {"first": first, "last": last, "step": step})
        conn.execute(_TRIES, {"first": first, "last": last})


def in_database(dsn: str) -> dict[int, dict[str, Any]]:
    """Every message with its tries, in the types a lake has."""
    columns = RELATIONS["archive"].columns
    names = [column.name for column in columns]
    texts = ", ".join(column.expression for column in columns)
    with psycopg.connect(dsn, options="-c timezone=UTC") as conn:
        rows = conn.execute(f"select {texts} from menzil.archive".encode()).fetchall()
        tries = conn.execute(
            "select message_id, attempt, outcome, leased_at, ended_at, worker, error, status_code, duration_ms"
            " from menzil.attempts order by message_id, attempt"
        ).fetchall()
    found = {row[0]: dict(zip(names, row, strict=True)) | {"attempts": []} for row in rows}
    most = sys.float_info.max
    for message_id, *attempt, took in tries:
        if message_id in found:  # tries stay when their month leaves
            found[message_id]["attempts"].append((*attempt, max(-most, min(float(took), most))))
    return found


def archived(dsn: str) -> int:
    """How many ended messages the database has."""
    with psycopg.connect(dsn) as conn:
        row = conn.execute("select count(*) from menzil.archive").fetchone()
        assert row is not None
        return int(row[0])


def event_lines(dsn: str) -> dict[int, dict[str, Any]]:
    """The event log, in the types a lake has."""
    columns = RELATIONS["event_log"].columns
    texts = ", ".join(column.expression for column in columns)
    with psycopg.connect(dsn, options="-c timezone=UTC") as conn:
        rows = conn.execute(f"select {texts} from menzil.event_log".encode()).fetchall()
    return {row[0]: dict(zip([column.name for column in columns], row, strict=True)) for row in rows}


def lines_in_lake(place: Path) -> dict[int, dict[str, Any]]:
    """The same of a lake. A line that lies there twice fails here."""
    names = [column.name for column in RELATIONS["event_log"].columns]
    rows = _rows(place, "events")
    found = {row["id"]: {name: row[name] for name in names} for row in rows}
    assert len(found) == len(rows)
    return found


def in_lake(place: Path, spark: SparkSession | None = None) -> dict[int, dict[str, Any]]:
    """The same of a lake, read by pyiceberg, or by Spark where one is given. A message that is there twice fails here.

    pyiceberg reads a small lake in 0.1 s. Spark reads every value of the same files in each verify.
    """
    names = [column.name for column in RELATIONS["archive"].columns]
    found: dict[int, dict[str, Any]] = {}
    # Through Arrow: a row of PySpark cannot hold the year 1.
    rows = _rows(place, "messages") if spark is None else lake.read(spark, place).toArrow().to_pylist()
    for row in rows:
        assert row["id"] not in found, f"message {row['id']} is there twice"
        attempts = [tuple(attempt.values()) for attempt in row["attempts"]]
        found[row["id"]] = {name: row[name] for name in names} | {"attempts": attempts}
    return found


def _rows(place: Path, name: str) -> list[dict[str, Any]]:
    table = open_lake(place).table(name)
    found: list[dict[str, Any]] = [] if table is None else table.scan().to_arrow().to_pylist()
    return found
