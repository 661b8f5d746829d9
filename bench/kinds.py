"""Kinds of messages and the life each of them has: sent, leased, settled. The SQL fits this version and 0.1.0."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.payloads import numbers_literal, text
from bench.server import CHANNEL
from bench.turns import Conn

LEASE_MS = 600_000  # longer than a section lasts: no message comes back by itself
LIMITED = "limited"
BODY = text(1)

_BATCH = "select menzil.send_batch(%(channel)s, array_fill(%(body)s::jsonb, array[%(size)s::integer]))"
_SINGLE = "select count(menzil.send(%(channel)s, %(body)s::jsonb)) from generate_series(1, %(size)s)"
_MANY = """
select menzil.send_many(array_fill(%(channel)s::text, array[%(size)s::integer]),
  array_fill(%(body)s::jsonb, array[%(size)s::integer]),
  {} => array(select 'k' || g from generate_series(%(first)s::bigint, %(first)s::bigint + %(size)s - 1) g))"""
_LIMIT = """
select menzil.channel_set(%s, p_max_concurrency => 100000, p_release_interval_ms => 1000::bigint,
  p_release_count => 1000000)"""
_DEQUEUE = "select id, num_attempts, payload from menzil.message_dequeue(%s, %s)"
_COMPLETE = "select id, outcome from menzil.message_complete(%s::bigint[], %s::bigint[])"
_FAIL = """
select id, outcome from menzil.message_fail(%s::bigint[], %s::bigint[],
  array_fill('[RETRYABLE] no'::text, array[%s::integer]), array_fill(interval '0', array[%s::integer]))"""
_NEXT = "select id, num_attempts, payload from menzil.message_next(%s::bigint[], %s::bigint[], %s, %s)"

Tokens = tuple[str, str]
NOTHING: Tokens = "{}", "{}"


@dataclass(frozen=True)
class Kind:
    """How messages of one kind are sent, and what happens to them before they are completed."""

    name: str
    sql: str = _BATCH
    channel: str = CHANNEL
    tries: int = 1


PLAIN = Kind("in batches")
SINGLE = Kind("sent one by one", _SINGLE)
KINDS = (
    PLAIN,
    SINGLE,
    Kind("with ordering keys", _MANY.format("p_ordering_keys")),
    Kind("to a limited channel", channel=LIMITED),
    Kind("with idempotency keys", _MANY.format("p_idempotency_keys")),
    Kind("failed once", tries=2),
)

_keys = itertools.count(1_000_000, 100_000)  # no key is used twice


def limit(conn: Conn) -> None:
    """Make the channel that has limits, which are never reached."""
    conn.execute(_LIMIT, (LIMITED,))


def send(conn: Conn, kind: Kind, size: int) -> None:
    """Send so many messages of this kind with one statement."""
    conn.execute(kind.sql, {"channel": kind.channel, "body": BODY, "size": size, "first": next(_keys)})


def tokens(rows: Sequence[tuple[int, ...]]) -> Tokens:
    """What a settle has to show for these messages."""
    return numbers_literal([row[0] for row in rows]), numbers_literal([row[1] for row in rows])


def take(conn: Conn, size: int) -> int:
    """Lease and complete, in two calls."""
    rows = conn.execute(_DEQUEUE, (LEASE_MS, size), binary=True).fetchall()
    if rows:
        conn.execute(_COMPLETE, tokens(rows), binary=True).fetchall()
    return len(rows)


def fail(conn: Conn, size: int) -> int:
    """Lease and fail; the next try is due at once."""
    rows = conn.execute(_DEQUEUE, (LEASE_MS, size), binary=True).fetchall()
    if rows:
        conn.execute(_FAIL, (*tokens(rows), len(rows), len(rows)), binary=True).fetchall()
    return len(rows)


def following(conn: Conn, size: int) -> Callable[[], int]:
    """Complete what the call before leased and lease the next messages, in one call."""
    last = NOTHING

    def step() -> int:
        nonlocal last
        rows = conn.execute(_NEXT, (*last, LEASE_MS, size), binary=True).fetchall()
        last = tokens(rows)
        return len(rows)

    return step


def lives(conn: Conn, kind: Kind, size: int, calls: int) -> int:
    """The whole life of messages, `size` at a time; returns how many."""
    for _ in range(calls):
        send(conn, kind, size)
        for number in range(kind.tries):
            left = size
            for _ in range(50):
                left -= fail(conn, left) if number < kind.tries - 1 else take(conn, left)
                if left <= 0:
                    break
            else:
                raise RuntimeError(f"Of {size} messages {kind.name}, {left} do not come.")
    return size * calls
