"""Fills queues before a measurement, fast and through the public functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from bench.payloads import array_literal, text

_BATCH = """
select coalesce(sum(cardinality(menzil.send_batch(%(channel)s, %(bodies)s::jsonb[]))), 0)
from generate_series(1, %(calls)s)"""

# Message by message over all channels, so that the channels lie mixed, as senders would leave them.
_SPREAD = """
select cardinality(menzil.send_many(
  array(select 'c' || mod(g, %(channels)s::bigint) from generate_series(%(first)s::bigint, %(last)s::bigint) g),
  array_fill(%(body)s::jsonb, array[(%(last)s::bigint - %(first)s::bigint + 1)::integer]),
  p_ordering_keys => case when %(keys)s::bigint > 0 then
    array(select 'k' || mod(g, %(keys)s::bigint) from generate_series(%(first)s::bigint, %(last)s::bigint) g) end))"""

_CHANNELS = """
select count(menzil.channel_set('c' || g, p_max_concurrency => %s::integer, p_release_interval_ms => %s::bigint,
  p_release_count => %s::integer))
from generate_series(%s::integer, %s::integer) g"""

Conn = psycopg.Connection[Any]

CALL = 5_000  # messages of one send
STATEMENT = 50_000  # messages of one transaction


def backlog(conn: Conn, channel: str, count: int) -> int:
    """Send so many messages to one channel, rounded up to whole calls; returns how many."""
    bodies = array_literal([text(number) for number in range(CALL)])
    left = -(-count // CALL)
    while left > 0:
        calls = min(left, STATEMENT // CALL)
        conn.execute(_BATCH, {"channel": channel, "bodies": bodies, "calls": calls})
        left -= calls
    return -(-count // CALL) * CALL


def spread(conn: Conn, first: int, count: int, channels: int, keys: int = 0) -> None:
    """Send messages number `first` and the following in turn to c0, c1, … and, where asked, to the keys k0, k1, …"""
    while count > 0:
        part = min(count, CALL)
        conn.execute(
            _SPREAD,
            {"channels": channels, "first": first, "last": first + part - 1, "body": text(first), "keys": keys},
        )
        first, count = first + part, count - part


def channels(conn: Conn, count: int, *, concurrency: int | None = None, interval_ms: int = 0, rate: int = 1) -> None:
    """Make channels c0, c1, …"""
    for first in range(0, count, 10_000):
        last = min(first + 10_000, count) - 1
        conn.execute(_CHANNELS, (concurrency, interval_ms, rate, first, last))


def settle(conn: Conn) -> None:
    """Do at once what the next dequeues would do little by little: the log of sends is empty afterwards."""
    old = conn.execute("select to_regclass('menzil.arrival') is not null").fetchone() == (True,)  # version 0.1.0
    log = "menzil.arrival" if old else "menzil.line"
    for _ in range(10_000):
        conn.execute("select menzil.maintain()")
        if conn.execute(f"select exists (select from {log})").fetchone() == (False,):
            return
    raise RuntimeError("The log of sends does not get empty.")


def exactly(conn: Conn, channels: Sequence[str], count: int, bodies: Sequence[str] | None = None) -> None:
    """Send so many messages, not one more, as many to each channel, a call to one after a call to the next."""
    left = {name: count // len(channels) + (place < count % len(channels)) for place, name in enumerate(channels)}
    texts = bodies or [text(number) for number in range(CALL)]
    while any(left.values()):
        for name in channels:
            part = min(left[name], len(texts))
            if part:
                conn.execute(_BATCH, {"channel": name, "bodies": array_literal(texts[:part]), "calls": 1})
                left[name] -= part
