"""Fills the archive with ended messages, as webhooks leave them: settled by the hundred, each with its response."""

from __future__ import annotations

from typing import Any

import psycopg

CHANNELS = 20
TOGETHER = 100  # messages of one settle

_CHANNELS = "select count(menzil.channel_set('partner-' || g)) from generate_series(0, %s - 1) g"
_MESSAGES = """
insert into menzil.message (id, channel_id, priority, created_at, payload, payload_hash, correlation_id)
select g, c.id, 0, %(month)s::timestamptz + (g - %(first)s::bigint) * %(step)s::interval,
       jsonb_build_object('order', g, 'customer', md5(g::text), 'lines', jsonb_build_array(g %% 9, 'book')),
       md5(g::text), gen_random_uuid()
  from generate_series(%(first)s::bigint, %(last)s::bigint) g
  join menzil.channel c on c.name = 'partner-' || g %% %(channels)s
 order by g"""  # as they are sent: a month lies in the order of ids
# Of a settle with second tries, those are a row of their own.
_DONE = """
insert into menzil.done (lo_id, hi_id, n, status, attempt, leased_at, ended_at, ended_xid, worker, ids, responses)
select min(m.id), max(m.id), count(*), 'completed', t.attempt, max(m.created_at), max(m.created_at) + interval '0.2 s',
       pg_current_xact_id(), 'worker-1',
       case when max(m.id) - min(m.id) <> count(*) - 1 then array_agg(m.id order by m.id) end,
       array_fill('{"status": 200, "duration_ms": 12.5}'::jsonb, array[count(*)::integer])
  from menzil.message m
 cross join lateral (
   select case when %(again)s > 0 and mod(m.id, greatest(1, %(again)s)) = 0 then 2 else 1 end) t(attempt)
 where m.id between %(first)s and %(last)s
 group by m.id / %(together)s, t.attempt"""
_RETURNED = """
insert into menzil.returned (id, created_at, attempts, retry_count, place_at, first_leased_at, last_error)
select m.id, m.created_at, 2, 1, m.created_at, m.created_at, 'HTTP 503'
  from menzil.message m where m.id between %(first)s and %(last)s and mod(m.id, greatest(1, %(again)s)) = 0"""
_TRIES = """
insert into menzil.attempt (message_id, attempt, channel_id, outcome, leased_at, ended_at, worker, error)
select m.id, 1, m.channel_id, 'failed', m.created_at, m.created_at, 'worker-1', 'HTTP 503'
  from menzil.message m where m.id between %(first)s and %(last)s and mod(m.id, greatest(1, %(again)s)) = 0"""
_PLAIN = "create table plain_archive as select * from menzil.archive_between('-infinity', 'infinity')"

Conn = psycopg.Connection[Any]


def month(conn: Conn, begins: str, first: int, count: int, *, step: str = "1 ms", again: int = 0) -> None:
    """Archive messages number `first` and the following in this month; every `again`-th needed a second try."""
    conn.execute(_CHANNELS, (CHANNELS,))
    conn.execute("select menzil._make_archive_month(%s)", (begins,))
    values: dict[str, object] = {"month": begins, "first": first, "last": first + count - 1, "step": step}
    values |= {"channels": CHANNELS, "together": TOGETHER, "again": again}
    conn.execute(_MESSAGES, values)
    conn.execute("analyze menzil.message")
    conn.execute(_DONE, values)
    if again:
        conn.execute(_RETURNED, values)
        conn.execute(_TRIES, values)


def rest(conn: Conn) -> None:
    """All tables as autovacuum would leave them, and the same rows in a plain table, which is what is compared with."""
    for name in ("message", "done", "returned", "attempt"):
        conn.execute(f"vacuum analyze menzil.{name}")
    conn.execute(_PLAIN)
    conn.execute("vacuum analyze plain_archive")
