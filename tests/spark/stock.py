"""Something to read: a queue that was used, and an archive of many rows over several months."""

from __future__ import annotations

from typing import Any

import psycopg

Conn = psycopg.Connection[Any]

# Straight into the table: a month of history in a second. ended_xid is that of this transaction, as for real ends.
_ROWS = """
insert into menzil.archive (id, status, channel, endpoint_id, priority, num_attempts, retry_count, created_at,
    first_leased_at, leased_at, ended_at, ended_xid, worker, payload, content, ordering_key, correlation_id, headers,
    last_error)
select g, case when g % 10 = 0 then 'failed' else 'completed' end, 'c' || g % 5, 1 + g % 5, (g % 11)::smallint,
       1 + g % 3, (g % 3)::integer, t.at, t.at + interval '1 s', t.at + interval '1 s',
       t.at + interval '2 s' + g * interval '1 us', pg_current_xact_id(), 'w' || g % 2,
       case when g % 7 > 0 then jsonb_build_object('n', g, 'text', 'körper ' || g) end,
       case when g % 7 = 0 then '\\x00ff'::bytea end,
       case when g % 3 = 0 then 'k' || g % 4 end, case when g % 2 = 0 then gen_random_uuid() end, '{"a": "b"}',
       case when g % 10 = 0 then 'it''s 100%% \\ broken' end
  from generate_series(%(first)s::bigint, %(last)s::bigint) g
 cross join lateral (
   select %(start)s::timestamptz + g %% %(months)s * interval '1 month' + g * interval '1 ms' as at) t
""".replace("g % ", "g %% ")

START = "2026-01-03 00:00:00+00"


def archive(conn: Conn, count: int, months: int = 3, first: int = 1) -> None:
    """Archive messages first … first + count - 1, in turn in each of the months from January 2026."""
    make_months(conn, months)
    conn.execute(_ROWS, {"first": first, "last": first + count - 1, "start": START, "months": months})


def make_months(conn: Conn, months: int = 3) -> None:
    """The partitions of January 2026 and the following."""
    query = "select menzil._make_archive_month(timestamptz '2026-01-01 00:00+00' + %s * interval '1 month')"
    for month in range(months):
        conn.execute(query, (month,))


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
