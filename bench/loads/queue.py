"""menzil, called as a client calls it: each statement is a transaction that waits for the disk."""

from __future__ import annotations

import random

from bench.crew import Step
from bench.loads.connections import client, connect
from bench.payloads import array_literal, numbers_literal, payload, text

LEASE_MS = 30_000
LONG_LEASE_MS = 600_000  # the last batch of a measurement stays leased: it must not come back in the next one

_SEND = "select menzil.send(%s, %s::jsonb)"
_SEND_BATCH = "select menzil.send_batch(%s, %s::jsonb[])"
_DEQUEUE = "select id, num_attempts, payload from menzil.message_dequeue(%s, %s)"
_NEXT = "select id, num_attempts, payload from menzil.message_next(%s::bigint[], %s::bigint[], %s, %s)"
_COMPLETE = "select id, outcome from menzil.message_complete(%s::bigint[], %s::bigint[])"


def send(dsn: str, worker: int, channel: str) -> Step:
    """One message, one commit."""
    conn, body = connect(dsn), text(worker)

    def step() -> int:
        conn.execute(_SEND, (channel, body), binary=True).fetchone()
        return 1

    return step


def send_batch(dsn: str, worker: int, channel: str, size: int) -> Step:
    """The fastest way for a client: all payloads in one array literal, made anew for each call."""
    conn, bodies = connect(dsn), [text(number) for number in range(worker, worker + size)]

    def step() -> int:
        conn.execute(_SEND_BATCH, (channel, array_literal(bodies)), binary=True).fetchone()
        return size

    return step


def send_batch_by_client(dsn: str, worker: int, channel: str, size: int) -> Step:
    """The same through Menzil.send_batch, from Python objects to a list of ids."""
    menzil, bodies = client(dsn), [payload(number) for number in range(worker, worker + size)]

    def step() -> int:
        return len(menzil.send_batch(channel, bodies))

    return step


def drain(dsn: str, size: int, **_: object) -> Step:
    """Dequeue and complete, payloads fetched."""
    conn = connect(dsn)

    def step() -> int:
        rows = conn.execute(_DEQUEUE, (LEASE_MS, size), binary=True).fetchall()
        if rows:
            tokens = numbers_literal([row[0] for row in rows]), numbers_literal([row[1] for row in rows])
            conn.execute(_COMPLETE, tokens, binary=True).fetchall()
        return len(rows)

    return step


def drain_next(dsn: str, size: int, **_: object) -> Step:
    """The same in one call: complete what the call before leased and lease the next messages."""
    conn, last = connect(dsn), ("{}", "{}")

    def step() -> int:
        nonlocal last
        rows = conn.execute(_NEXT, (*last, LONG_LEASE_MS, size), binary=True).fetchall()
        last = numbers_literal([row[0] for row in rows]), numbers_literal([row[1] for row in rows])
        return len(rows)

    return step


def drain_by_client(dsn: str, size: int, **_: object) -> Step:
    """The same through Menzil.dequeue and Menzil.complete_many."""
    menzil = client(dsn)

    def step() -> int:
        messages = menzil.dequeue(size, lease=LEASE_MS / 1000)
        if messages:
            menzil.complete_many(messages)
        return len(messages)

    return step


def churn(dsn: str, worker: int, channels: int, size: int) -> Step:
    """The whole life of messages: send a batch to some channel, dequeue as many, complete them."""
    conn, chance = connect(dsn), random.Random(worker)
    bodies = array_literal([text(number) for number in range(size)])
    take = drain(dsn, size)

    def step() -> int:
        conn.execute(_SEND_BATCH, (f"c{chance.randrange(channels)}", bodies), binary=True).fetchone()
        return take()

    return step
