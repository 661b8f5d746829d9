"""A queue of any size with everything in it, statistics that mislead, and calls for a few messages of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import psycopg

from bench import fill

BATCH = 20

Conn = psycopg.Connection[Any]
#: A statement with its parameters.
Call = tuple[str, tuple[Any, ...]]

_COLUMNS = """
select c.oid::regclass::text, array_agg(quote_ident(a.attname)::text)
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
 where c.relnamespace = 'menzil'::regnamespace and c.relkind = 'r' group by c.oid"""

#: What the planner may come to believe of every column: that all its rows are alike, or that no two of them are.
BELIEFS = {"all alike": 1, "all different": -1}


def leave_alone(conn: Conn) -> None:
    """No autovacuum: statistics are what a test makes them."""
    for table, _ in conn.execute(_COLUMNS).fetchall():
        conn.execute(f"alter table {table} set (autovacuum_enabled = false)")


def mislead(conn: Conn, belief: str) -> None:
    """Let the planner believe it. Autovacuum that comes at a bad moment does the same."""
    for table, columns in conn.execute(_COLUMNS).fetchall():
        acts = ", ".join(f"alter column {column} set (n_distinct = {BELIEFS[belief]})" for column in columns)
        conn.execute(f"alter table {table} {acts}")
    conn.execute("analyze")


def furnish(conn: Conn) -> None:
    """The channels of the calls."""
    for name in ("c0", "c1", "c2", "work", "bulk", "peeked", "purged", "redriven", "waits", "other"):
        conn.execute("select menzil.channel_set(%s)", (name,))
    conn.execute("select menzil.channel_set('limited', p_max_concurrency => 1000000)")
    conn.execute("select menzil.channel_set('sized', p_max_size => 1000000)")
    conn.execute("select menzil.channel_set('blocks', p_on_dead => 'block')")
    conn.execute("select menzil.create_event_type('e')")
    conn.execute("select menzil.subscribe('e', 'work')")
    conn.execute("select menzil.schedule_create('nightly', '0 3 * * *', 'UTC', 'other', '{}')")


_END = """
select count(*) from (select array_agg(id) as ids, array_agg(num_attempts) as attempts
                        from menzil.message_dequeue(600000, 1000, array[%s]) having count(*) > 0) d
  cross join lateral menzil.{}"""
_MANY = """
select menzil.send_many(array_agg('rich'::text), array_agg('{"a": 1}'::jsonb),
  p_ordering_keys => array_agg(%(part)s || '-' || g %% 500), p_idempotency_keys => array_agg(%(part)s || '-' || g),
  p_correlation_ids => array_agg(gen_random_uuid()), p_expires_ats => array_agg(now() + interval '20 days'),
  p_scheduled_ats => array_agg(case when g %% 3 = 0 then now() + interval '3 days' end))
  from generate_series(1, %(count)s::integer) g"""


def grow(conn: Conn, part: str, count: int) -> None:
    """So many messages more of each kind: waiting, ended, dead, tried, and with keys and times."""
    fill.spread(conn, 0, count, 3)
    for channel, end in (
        ("ended", "message_complete(d.ids, d.attempts)"),
        ("dead", "message_fail(d.ids, d.attempts, array_fill('[PERMANENT] no'::text, array[cardinality(d.ids)]))"),
        ("tried", "message_fail(d.ids, d.attempts, array_fill('later'::text, array[cardinality(d.ids)]))"),
    ):
        conn.execute("select menzil.channel_set(%s)", (channel,))
        fill.exactly(conn, [channel], count)
        while conn.execute(_END.format(end), (channel,)).fetchone() != (0,):
            pass
    conn.execute("select menzil.channel_set('rich', p_max_size => 10000000)")
    conn.execute(_MANY, {"part": part, "count": count})
    fill.settle(conn)
    for job in ("lookups", "causes"):
        while (row := conn.execute("select menzil.job_run(%s)", (job,)).fetchone()) and row[0] > 0:
            pass


class World:
    """What a call needs is made on a connection of its own."""

    def __init__(self, conn: Conn) -> None:
        self.conn, self.numbers = conn, itertools.count(1)

    def one(self, statement: str, *params: Any) -> Any:
        row = self.conn.execute(statement, params).fetchone()
        assert row is not None
        return row[0]

    def send(self, channel: str = "work", count: int = BATCH, **options: Any) -> list[int]:
        """Messages of their own; an option is an expression in SQL, g the number of the message."""
        given = "".join(f", p_{name} => {value}" for name, value in options.items())
        return list(
            self.one(
                f"select array_agg(menzil.send_with_options(%s, '{{\"a\": 1}}'{given}) order by g)"
                " from generate_series(1, %s::integer) g",
                channel,
                count,
            )
        )

    def lease(self, channel: str = "work", count: int = BATCH) -> tuple[list[int], list[int]]:
        """Messages in flight: ids and attempts."""
        found = self.conn.execute(
            "select id, num_attempts from menzil.message_dequeue(600000, %s, array[%s])", (count, channel)
        ).fetchall()
        assert len(found) == count, f"{len(found)} instead of {count} messages of {channel}"
        return [row[0] for row in found], [row[1] for row in found]

    def in_flight(self, **options: Any) -> tuple[list[int], list[int]]:
        """Messages of this moment, leased together."""
        self.send(**options)
        return self.lease()

    def ended(self, act: str = "complete", channel: str = "work", count: int = BATCH, **options: Any) -> list[int]:
        self.send(channel, count, **options)
        ids, attempts = self.lease(channel, count)
        self.settle(act, ids, attempts)
        return ids

    def settle(self, act: str, ids: list[int], attempts: list[int]) -> None:
        statement, params = SETTLES[act](ids, attempts)
        self.conn.execute(statement, params)

    def clear(self) -> None:
        """Nothing waits in the channel that the calls share, and the log is folded."""
        self.conn.execute("select menzil._fold(clock_timestamp(), true, 2000)")
        while self.one(_END.format("message_complete(d.ids, d.attempts)"), "work"):
            pass

    def number(self) -> int:
        return next(self.numbers)


def _fail(error: str) -> Callable[[list[int], list[int]], tuple[str, tuple[Any, ...]]]:
    return lambda ids, attempts: (
        "select count(*) from menzil.message_fail(%s::bigint[], %s::bigint[], %s::text[])",
        (ids, attempts, [error] * len(ids)),
    )


SETTLES: dict[str, Callable[[list[int], list[int]], tuple[str, tuple[Any, ...]]]] = {
    "complete": lambda ids, a: ("select count(*) from menzil.message_complete(%s::bigint[], %s::bigint[])", (ids, a)),
    "defer": lambda ids, a: ("select count(*) from menzil.message_defer(%s::bigint[], %s::bigint[])", (ids, a)),
    "fail": _fail("later"),
    "die": _fail("[PERMANENT] no"),
    "heartbeat": lambda ids, a: (
        "select count(*) from menzil.message_heartbeat(%s::bigint[], %s::bigint[], 700000)",
        (ids, a),
    ),
}
