"""Something to read: a queue that was used, and an archive of many rows over several months."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from tests.spark import archiving

Conn = psycopg.Connection[Any]

# Sixty messages in a row end at the same moment, so those of the same fate end together. ended_xid is that of this
# transaction, as for real ends.
_COLUMNS = """id, status, channel, priority, num_attempts, retry_count, created_at, first_leased_at, leased_at,
    ended_at, ended_xid, worker, payload, content, ordering_key, correlation_id, headers, last_error"""
_ROWS = """
select g, case when g % 10 = 0 then 'failed' else 'completed' end, 'c' || g % 5, (g % 11)::smallint,
       1 + g % 3, (g % 3)::integer, t.at, t.ended_at - interval '1 s', t.ended_at - interval '1 s',
       t.ended_at, pg_current_xact_id(), 'w' || g % 2,
       case when g % 7 > 0 then jsonb_build_object('n', g, 'text', 'körper ' || g) end,
       case when g % 7 = 0 then '\\x00ff'::bytea end,
       case when g % 3 = 0 then 'k' || g % 4 end, case when g % 2 = 0 then gen_random_uuid() end, '{"a": "b"}'::jsonb,
       case when g % 10 = 0 then 'it''s 100%% \\ broken' end
  from generate_series(%(first)s::bigint, %(last)s::bigint) g
 cross join lateral (
   select %(start)s::timestamptz + g %% %(months)s * interval '1 month' + g * interval '1 ms' as at,
          %(start)s::timestamptz + %(months)s * interval '1 month' + g / 60 * interval '1 s' as ended_at) t
""".replace("g % ", "g %% ")

START = "2026-01-03 00:00:00+00"


def archive(conn: Conn, count: int, months: int = 3, first: int = 1) -> None:
    """Archive messages first … first + count - 1, in turn in each of the months from January 2026."""
    make_months(conn, months)
    params = {"first": first, "last": first + count - 1, "start": START, "months": months}
    archiving.archive(conn, _COLUMNS, _ROWS, params)


def make_months(conn: Conn, months: int = 3) -> None:
    """The partitions of January 2026 and the following, and the channels."""
    query = "select menzil._make_archive_month(timestamptz '2026-01-01 00:00+00' + %s * interval '1 month')"
    for month in range(months):
        conn.execute(query, (month,))
    missing = "not exists (select 1 from menzil.channels c where c.name = 'c' || g)"
    conn.execute(f"select menzil.channel_set('c' || g) from generate_series(0, 4) g where {missing}".encode())


def drop_january(conn: Conn) -> None:
    """As the clean-up of old months does it, which comes again while another session still holds the month."""
    deadline = time.monotonic() + 60
    drop = "select menzil._drop_archive_month('2026-01-01+00', menzil._last_end('2026-01-01+00'))"
    while conn.execute(drop).fetchone() != (1,):
        assert time.monotonic() < deadline


def used(conn: Conn) -> None:
    """Through the front door: completed, failed, waiting, dead; an endpoint, an event type, a subscription."""
    conn.execute("select menzil.channel_set('work')")
    conn.execute("""select menzil.create_endpoint('hook', 'http', '{"url": "https://example.com/x"}')""")
    conn.execute("select menzil.create_event_type('order.paid')")
    conn.execute("select menzil.subscribe('order.paid', 'hook')")
    conn.execute("select menzil.send('work', jsonb_build_object('n', g)) from generate_series(1, 6) g")
    conn.execute(
        """select menzil.message_complete(array_agg(id), array_agg(num_attempts))
             from menzil.message_dequeue(60000, 2, array['work'])"""
    )
    conn.execute(
        """select menzil.message_fail(id, num_attempts, '[PERMANENT] no such order')
             from menzil.message_dequeue(60000, 1, array['work'])"""
    )
