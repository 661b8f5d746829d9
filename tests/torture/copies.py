"""Dumps taken in mid-load are restored beside the queue and drained: every live message comes, and none twice."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from menzil.embedded import binaries

NAME = "copy"
#: Seconds until everything in a copy must have ended: leases that it holds run out, retries and schedules come due.
DRAINS_IN = 60.0
BIN = binaries.find().bin

LIVE = """select id from menzil.message except
 select unnest(coalesce(d.ids, array(select generate_series(d.lo_id, d.hi_id)))) from menzil.done d"""
LEASE = "select id, num_attempts from menzil.message_dequeue(60000, 200, p_endpoints => %s)"
COMPLETE = "select count(*) from menzil.message_complete(%s::bigint[], %s::bigint[])"
PLACES = "select status from menzil.health_check() where check_name = 'places'"


def available() -> bool:
    """Whether this PostgreSQL came with its tools."""
    return (BIN / "pg_dump").exists() and (BIN / "pg_restore").exists()


def begin(dsn: str, file: Path) -> subprocess.Popen[bytes]:
    """A real pg_dump, beside everything else that goes on."""
    command = [str(BIN / "pg_dump"), "-Fc", "-Z0", "-f", str(file), "-d", dsn]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def drained(dsn: str, file: Path) -> dict[str, Any]:
    """Restore a dump and lease and complete everything in it. Returns what was live, and what is wrong with it."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f"drop database if exists {NAME} with (force)")
        conn.execute(f"create database {NAME}")
    copy = make_conninfo(dsn, dbname=NAME)
    subprocess.run([BIN / "pg_restore", "-d", copy, file], check=True, capture_output=True)
    with psycopg.connect(copy, autocommit=True) as conn:
        conn.execute("set synchronous_commit = off")
        conn.execute("select menzil.adopt()")
        wanted = _ids(conn, LIVE)
        got = _drain(conn, wanted)
        left = _ids(conn, LIVE)
        place = conn.execute(PLACES).fetchone()
    return {
        "live": len(wanted),
        "left": sorted(left)[:20],
        "strangers": sorted(set(got) - wanted)[:20],
        "twice": sorted({one for one in got if got.count(one) > 1})[:20] if len(set(got)) < len(got) else [],
        "places": place[0] if place else None,
    }


def _drain(conn: psycopg.Connection[Any], wanted: set[int]) -> list[int]:
    """Until nothing is live: what expires meanwhile ends by itself."""
    got: list[int] = []
    ends = time.monotonic() + DRAINS_IN
    while time.monotonic() < ends:
        rows = [row for endpoints in (False, True) for row in conn.execute(LEASE, (endpoints,)).fetchall()]
        if rows:
            got += [row[0] for row in rows]
            conn.execute(COMPLETE, ([row[0] for row in rows], [row[1] for row in rows]))
        elif wanted <= set(got) or not _ids(conn, LIVE):
            break
        else:
            time.sleep(0.05)
    return got


def _ids(conn: psycopg.Connection[Any], text: str) -> set[int]:
    return {row[0] for row in conn.execute(text.encode()).fetchall()}
