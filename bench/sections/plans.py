"""Plans: whether the pace holds, what a stop leaves, what a killed process loses, and what a step costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import psycopg

from bench import fill
from bench.server import CHANNEL, connected
from bench.session import Session
from bench.usage import cpu_of

Conn = psycopg.Connection[Any]

MESSAGES = 2_000
RATE = 100
CHUNK = 1_000
KILLS = 5

_SETTLE = """
select count(*) from (select array_agg(id) as ids, array_agg(num_attempts) as attempts
                        from menzil.message_dequeue(60000, 1000) having count(*) > 0) d cross join lateral """
_COMPLETE = _SETTLE + "menzil.message_complete(d.ids, d.attempts)"
_FAIL = _SETTLE + (
    "menzil.message_fail(d.ids, d.attempts, array_fill('[PERMANENT] HTTP 422 no'::text, array[cardinality(d.ids)]))"
)


def run(session: Session) -> None:
    """Three promises and a few costs."""
    with connected(session.server.database()) as conn:
        fill.exactly(conn, [CHANNEL], MESSAGES)
        drain(conn, _COMPLETE)
        pace(session, conn)
        take_back(session, conn)
    with connected(session.server.database()) as conn:
        kill(session, conn)
    with connected(session.server.database()) as conn:
        costs(session, conn)


def one(conn: Conn, statement: str, *values: Any) -> Any:
    """The only value of a statement."""
    row = conn.execute(statement, values or None).fetchone()
    return None if row is None else row[0]


def drain(conn: Conn, statement: str) -> None:
    """Let everything that waits end so."""
    while one(conn, statement) or one(conn, "select count(*) from menzil.queue"):
        pass


def begin(conn: Conn, kind: str, rate: float | None = None) -> int:
    """A plan about the whole channel, running."""
    where = f'{{"channel": "{CHANNEL}"}}'
    number: int = one(conn, "select menzil.plan_create(%s, %s::jsonb, %s::float8)", kind, where, rate)
    one(conn, "select menzil.plan_run(%s)::text", number)
    return number


def pace(session: Session, conn: Conn) -> None:
    """A replay of 2,000 at 100 a second, stepped by the job of the workers."""
    number = begin(conn, "replay", RATE)
    while one(conn, "select done from menzil.plans where id = %s", number) < MESSAGES:
        one(conn, "select menzil.job_run('plans')")
    rows = conn.execute("select scheduled_at from menzil.message where replay_of is not null").fetchall()
    most = most_in_a_second([at for (at,) in rows])
    session.figure(
        f"most due in any second, {MESSAGES:,} at {RATE} a second", [most], at_most=1.1 * RATE, unit="messages"
    )
    one(conn, "select menzil.plan_stop(%s, true)", number)


def most_in_a_second(moments: Sequence[datetime]) -> int:
    """The most that fall into any second, wherever it begins."""
    ordered = sorted(moments)
    most = first = 0
    for last, moment in enumerate(ordered):
        while ordered[first] <= moment - timedelta(seconds=1):
            first += 1
        most = max(most, last - first + 1)
    return most


def take_back(session: Session, conn: Conn) -> None:
    """Stop at half: a part of what was made is leased, a part has ended, and the rest must be gone at once."""
    number = begin(conn, "replay")
    one(conn, "select menzil.plan_step(%s)", number)
    one(conn, "select count(*) from (select menzil.message_complete(array_agg(id), array_agg(num_attempts))"
              " from menzil.message_dequeue(60000, 200)) d")  # fmt: skip
    leased = one(conn, "select count(*) from menzil.message_dequeue(60000, 100)")
    began = time.perf_counter()
    taken = one(conn, "select menzil.plan_stop(%s, true)", number)
    took = time.perf_counter() - began
    left = one(conn, "select count(*) from menzil.queue where status = 'pending'")
    still = len(conn.execute("select 1 from menzil.message_dequeue(1000, 1000)").fetchall())
    session.say(f"{taken} taken back in {took * 1000:.0f} ms, {leased} were leased")
    session.figure("left waiting after a stop at half with take back", [left + still], at_most=0, unit="messages")


def kill(session: Session, conn: Conn) -> None:
    """A command that steps a redrive is killed with SIGKILL again and again; another one goes on."""
    count = MESSAGES * (3 if session.quick else 10)
    fill.exactly(conn, [CHANNEL], count)
    drain(conn, _FAIL)
    number = begin(conn, "redrive")
    killed = 0
    while one(conn, "select status from menzil.plans where id = %s", number) == "running":
        command = [sys.executable, "-m", "menzil", "plan", "run", str(number), "--here"]
        env = {**os.environ, "MENZIL_DSN": dsn_of(conn)}
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = one(conn, "select done from menzil.plans where id = %s", number)
        while process.poll() is None and killed < KILLS:
            if one(conn, "select done from menzil.plans where id = %s", number) > done:
                process.send_signal(signal.SIGKILL)
                killed += 1
                break
        process.wait()
    made, distinct = conn.execute(
        "select count(*), count(distinct redrive_of) from menzil.message where redrive_of is not null"
    ).fetchone() or (0, 0)
    session.say(f"{killed} commands killed while they redrove {count:,} dead letters")
    session.figure("lost by killed steppers", [count - distinct], at_most=0, unit="messages")
    session.figure("doubled by killed steppers", [made - distinct], at_most=0, unit="messages")


def dsn_of(conn: Conn) -> str:
    """The connection string, with its password."""
    return psycopg.conninfo.make_conninfo(conn.info.dsn, password=conn.info.password)


def costs(session: Session, conn: Conn) -> None:
    """Processor time of the server: a step of 1,000 beside the calls that do the same all at once."""
    count = 24_000
    fill.exactly(conn, [CHANNEL], count)
    drain(conn, _FAIL)
    conn.execute("analyze")
    found: dict[str, list[float]] = {}

    def spent(name: str, statement: str, *values: Any) -> None:
        before = cpu_of(conn.info.backend_pid)
        number = one(conn, statement, *values)
        found.setdefault(name, []).append((cpu_of(conn.info.backend_pid) - before) / number * 1e6)

    channel = one(conn, "select id from menzil.channels where name = %s", CHANNEL)
    for _ in session.repeat():
        spent("redrive_endpoint", "select menzil.redrive_endpoint(%s, null, %s)", CHANNEL, 2 * CHUNK)
        drain(conn, _COMPLETE)
        for name, rate in (("redrive", None), ("redrive at a rate", 1000.0)):
            number = begin(conn, "redrive", rate)
            spent(name, "select sum(menzil.plan_step(%s, %s)) from generate_series(1, 2)", number, CHUNK)
            spent(f"take back of a {name}", "select menzil.plan_stop(%s, true)", number)
    drain(conn, _COMPLETE)
    since = one(conn, "select clock_timestamp()")
    fill.exactly(conn, [CHANNEL], 2 * CHUNK)
    drain(conn, _COMPLETE)
    until = one(conn, "select clock_timestamp()")
    where = "jsonb_build_object('channel', %s::text, 'since', %s::timestamptz, 'until', %s::timestamptz)"
    for _ in session.repeat():
        spent("replay_range", "select menzil.replay_range(%s, %s, %s)", channel, since, until)
        drain(conn, _COMPLETE)
        number = one(conn, f"select menzil.plan_create('replay', {where})", CHANNEL, since, until)
        one(conn, "select menzil.plan_run(%s)::text", number)
        spent("replay", "select sum(menzil.plan_step(%s, %s)) from generate_series(1, 2)", number, CHUNK)
        spent("take back of a replay", "select menzil.plan_stop(%s, true)", number)
    for name, whole in (
        ("redrive", "redrive_endpoint"),
        ("redrive at a rate", "redrive_endpoint"),
        ("replay", "replay_range"),
    ):
        ratios = [step / other for step, other in zip(found[name], found[whole], strict=True) if other]
        beside = {"step": found[name], whole: found[whole]}
        session.figure(f"processor time of a step, {name}, beside {whole}", ratios, at_most=1.5, beside=beside)
    for name in ("take back of a redrive", "take back of a redrive at a rate", "take back of a replay"):
        session.figure(f"processor time, {name}", found[name], unit="µs a message")
