"""A channel with very many messages and one with a single message, equal in priority: when is the single one served?"""

from __future__ import annotations

import time
from typing import Any

import psycopg

from bench import fill
from bench.payloads import numbers_literal, text
from bench.server import CHANNEL, connected
from bench.session import Session

DEPTHS = {False: 900_000, True: 100_000}
SMALL = "small"
MOST_CALLS = 1_000


def run(session: Session) -> None:
    """Send to the small channel again and again while the large one is being drained."""
    dsn = session.server.database()
    depth = DEPTHS[session.quick]
    with connected(dsn) as conn:
        conn.execute("select menzil.channel_set(%s)", (SMALL,))
        session.say(f"fills one channel with {depth:,} messages")
        fill.backlog(conn, CHANNEL, depth)
        calls: list[float] = []
        waits: list[float] = []
        for _ in range(20):
            conn.execute("select menzil.send(%s, %s::jsonb)", (SMALL, text(0)))
            called, waited = until_small(conn)
            calls.append(called)
            waits.append(waited * 1000)
    worst = max(calls)
    session.say(f"dequeue(100) calls until the single message was leased: {sorted(calls)}")
    session.figure(f"calls until one message beside {depth:,} is leased, worst of 20", [worst], at_most=2, unit="calls")
    session.figure("time until it is leased, completes included", waits, unit="ms")


def until_small(conn: psycopg.Connection[Any]) -> tuple[int, float]:
    """Dequeue and complete until the small channel's message comes; how many dequeues, how many seconds."""
    began = time.perf_counter()
    for call in range(1, MOST_CALLS):
        rows = conn.execute("select id, num_attempts, channel from menzil.message_dequeue(30000, 100)").fetchall()
        waited = time.perf_counter() - began
        tokens = numbers_literal([row[0] for row in rows]), numbers_literal([row[1] for row in rows])
        conn.execute("select menzil.message_complete(%s::bigint[], %s::bigint[])", tokens)
        if any(row[2] == SMALL for row in rows):
            return call, waited
    return MOST_CALLS, time.perf_counter() - began
