"""Lets time pass: all that a database remembers moves into the past, so that acts of one test lie hours apart."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import psycopg

#: Tables whose every time moves. The history by the minute, jobs and schedules keep to the real clock.
_MOVED = (
    "message", "returned", "scheduled", "expiring", "key", "lease", "line", "aside", "run", "lane", "gate", "done",
    "attempt", "dead_letter", "event", "worker", "channel", "plan", "plan_channel", "plan_part", "plan_progress",
    "feed_consumer",
    "pipeline_run", "subscription",
)  # fmt: skip

_COLUMNS = """
select c.relname, string_agg(format('%%I = %%I - $1', a.attname, a.attname), ', ')
  from pg_class c join pg_attribute a on a.attrelid = c.oid
 where c.relnamespace = 'menzil'::regnamespace and c.relname = any (%s)
   and a.atttypid = 'timestamptz'::regtype and a.attnum > 0 and not a.attisdropped
 group by 1"""

# A line or a run notes that all its messages are of this month; the count of a lane makes consumers look again.
_BESIDES = """
update menzil.gate set
  released_at = array(select u.at - $1 from unnest(released_at) with ordinality u(at, n) order by u.n);
update menzil.line set flags = flags | 1 where flags & 64 = 0 and rank is not null;
update menzil.run set flags = flags | 1;
update menzil.lane set v = v + 1;
select setval('menzil.swept_at', 0), setval('menzil.counted_at', 0), setval('menzil.deep_at', 0),
       setval('menzil.turn_mark', 0);
"""


#: The column with the id of a message, where rows of a long history need not move.
_IDS = {"message": "id", "done": "lo_id", "attempt": "message_id", "dead_letter": "original_message_id"}


def passes(conn: psycopg.Connection, seconds: float, above: int = 0) -> None:
    """Let so many seconds pass, for all but messages up to an id: `spread` gives those their times."""
    by = f"interval '{seconds} seconds'"
    with conn.transaction():
        conn.execute(f"select menzil._make_archive_month(menzil._month_of(now() - {by}))")
        for table, changes in conn.execute(_COLUMNS, (list(_MOVED),)).fetchall():
            only = f" where {_IDS[table]} > {above}" if table in _IDS else ""
            conn.execute(f"update menzil.{table} set {changes}{only}".replace("$1", by))
        conn.execute(_BESIDES.replace("$1", by))


#: When one message was sent, leased and ended.
Life = tuple[int, datetime, datetime, datetime]

_SPREAD = """
update menzil.message m set created_at = l.created_at from life l where m.id = l.id;
create temp table apart on commit drop as
  select l.id, d.status, d.attempt, l.leased_at, l.ended_at, d.ended_xid, d.worker
    from menzil.done d join life l on l.id between d.lo_id and d.hi_id and (d.ids is null or l.id = any (d.ids));
delete from menzil.done d using life l where l.id between d.lo_id and d.hi_id and (d.ids is null or l.id = any (d.ids));
insert into menzil.done (lo_id, hi_id, n, status, attempt, leased_at, ended_at, ended_xid, worker)
  select id, id, 1, status, attempt, leased_at, ended_at, ended_xid, worker from apart;
update menzil.attempt a set leased_at = l.leased_at, ended_at = l.ended_at from life l where a.message_id = l.id;
update menzil.returned r set created_at = l.created_at, place_at = l.created_at, due_at = l.ended_at,
    first_leased_at = l.leased_at from life l where r.id = l.id;
update menzil.dead_letter d set created_at = l.created_at, failed_at = l.ended_at
  from life l where d.original_message_id = l.id;
drop table apart, life;
"""


def spread(conn: psycopg.Connection, lives: Sequence[Life]) -> None:
    """Give messages that ended together, after one try each, times of their own."""
    with conn.transaction():
        conn.execute("select menzil._make_archive_month(menzil._month_of(%s))", (min(life[1] for life in lives),))
        conn.execute(
            "create temp table life (id bigint primary key, created_at timestamptz, leased_at timestamptz, "
            "ended_at timestamptz) on commit drop"
        )
        with conn.cursor() as cursor, cursor.copy("copy life from stdin") as copy:
            for life in lives:
                copy.write_row(life)
        conn.execute(_SPREAD)
