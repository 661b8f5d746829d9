"""A real history: the engine itself, with limits, ordering keys, schedules, failures and two consumers at once."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from tests.sql.clock import until

Conn = psycopg.Connection[Any]

SEND = """select menzil.send_with_options(%(channel)s, %(payload)s, p_priority => %(priority)s::smallint,
  p_scheduled_at => %(scheduled_at)s, p_expires_at => %(expires_at)s, p_ordering_key => %(key)s)"""
TAKE = "select id, num_attempts, payload from menzil.message_dequeue(60000, %s)"


def make(dsn: str, number: int, *, seed: int = 5) -> list[tuple[int, datetime]]:
    """Send so many messages, one after the other, and work them off; the ids with the time they were acknowledged."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.set_setting('default_max_retries', '2')")
        conn.execute("select menzil.channel_set('narrow', 3)")
        conn.execute("select menzil.channel_set('paced', null, null, 200, 40)")
        conn.execute("select menzil.channel_set('both', 5, null, 100, 30)")
        conn.execute("select menzil.channel_set('free')")
        told = _send(conn, number, random.Random(seed))
        with ThreadPoolExecutor(2) as pool:
            consumers = [pool.submit(_consume, dsn, seed + n) for n in (1, 2)]
            for done in (1, 2, 3):  # limits change while it runs
                until(lambda quarters=done: _ended(conn, number * quarters // 4), 120)
                conn.execute("select menzil.channel_set('narrow', %s)", (1 + done,))
            for consumer in consumers:
                consumer.result()
        conn.execute("select menzil.redrive_all()")
        _consume(dsn, seed)
    return told


def _ended(conn: Conn, number: int) -> bool:
    return conn.execute("select count(*) >= %s from menzil.archive", (number,)).fetchone() == (True,)


def _send(conn: Conn, number: int, dice: random.Random) -> list[tuple[int, datetime]]:
    told = []
    for n in range(number):
        now = datetime.now(UTC)
        kind = dice.random()
        row = conn.execute(SEND, {
            "channel": dice.choice(["narrow", "paced", "both", "free"]), "payload": Jsonb({"n": n}),
            "priority": dice.choice([0, 0, 0, 5]), "key": f"k{dice.randrange(6)}" if dice.random() < 0.4 else None,
            "scheduled_at": now + timedelta(milliseconds=300) if kind < 0.05 else None,
            "expires_at": now + timedelta(milliseconds=400) if 0.05 <= kind < 0.1 else None,
        }).fetchone()  # fmt: skip
        assert row is not None
        at = conn.execute("select clock_timestamp()").fetchone()
        assert at is not None
        told.append((row[0], at[0]))
        if kind > 0.98:
            conn.execute("select menzil.message_cancel(%s)", (row[0],))
    return told


def _consume(dsn: str, seed: int) -> None:
    """Until nothing is left, whatever waits for its time included."""
    dice = random.Random(seed)
    with psycopg.connect(dsn, autocommit=True) as conn:
        while True:
            taken = conn.execute(TAKE, (dice.choice([1, 5, 20]),)).fetchall()
            if not taken and conn.execute("select not exists (select 1 from menzil.queue)").fetchone() == (True,):
                return
            for number, attempt, _ in taken:
                _settle(conn, number, attempt, dice.random())


def _settle(conn: Conn, number: int, attempt: int, fate: float) -> None:
    if fate < 0.85:
        conn.execute("select menzil.message_complete(%s, %s)", (number, attempt))
    elif fate < 0.9:
        conn.execute("select menzil.message_defer(%s, %s, clock_timestamp() + interval '20 ms')", (number, attempt))
    elif fate < 0.98:
        conn.execute("select menzil.message_fail(%s, %s, '[RETRYABLE] HTTP 503', interval '20 ms')", (number, attempt))
    else:
        conn.execute("select menzil.message_fail(%s, %s, '[PERMANENT] HTTP 410')", (number, attempt))
