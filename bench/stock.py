"""A queue as an operator meets it on a bad day: very much waits, very much has ended, and many letters are dead.

What waits and what died went through the public functions. What ended long ago and the pulse are written set by set,
as the engine would have left them: half an hour of sends would say nothing more about a page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from bench import fill, history
from bench.payloads import text

Conn = psycopg.Connection[Any]

CHANNELS = 50  # and as many endpoints
CALL = 10_000  # messages of one statement
CORRELATION = "6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11"


@dataclass(frozen=True)
class Size:
    """How much there is of each."""

    waiting: int
    archived: int
    dead: int
    acts: int  # lines of the event log
    hours: int  # of the pulse by the minute
    days: int  # of the pulse by the hour


FULL = Size(1_000_000, 5_000_000, 100_000, 20_000, 48, 90)
QUICK = Size(20_000, 50_000, 2_000, 500, 2, 3)


@dataclass
class Stock:
    """What is there to look at."""

    size: Size
    ids: dict[str, int] = field(default_factory=dict)
    cause: str = ""
    plan: int = 0


_ENDPOINTS = """
select count(menzil.create_endpoint('e' || g, 'http',
         jsonb_build_object('url', 'https://partner-' || g || '.example.com/in')))
  from generate_series(0, %s - 1) g"""
_ERRORS = """
select count(*) from (select array_agg(id order by id) as ids, array_agg(num_attempts order by id) as attempts
                        from menzil.message_dequeue(60000, 1000, array(select 'c' || g from generate_series(0, %s - 1) g)) having count(*) > 0) d
 cross join lateral menzil.message_fail(d.ids, d.attempts, array(
   select '[PERMANENT] ' || (array['HTTP 422 order ' || i || ' is not known', 'HTTP 410 gone', 'ValueError: row ' || i || ' has no total',
                                   'connect to 10.0.0.' || i %% 200 || ' timed out'])[1 + i %% 4] || ' (partner ' || chr(97 + (i / 7 %% 10)::int) || ')'
     from unnest(d.ids) i))"""  # noqa: E501
_SCHEDULED = """
select cardinality(menzil.send_many(
  array(select 'c' || mod(g, %(channels)s::bigint) from generate_series(1, %(count)s::bigint) g),
  array_fill(%(body)s::jsonb, array[%(count)s::integer]),
  p_scheduled_ats => array(
    select now() + interval '1 day' + g * interval '1 s' from generate_series(1, %(count)s) g)))"""
_SINGLE = """
select count(menzil.send(case when g %% 2 = 0 then 'c' else 'e' end || mod(g / 2, %(channels)s::bigint),
                         %(body)s::jsonb))
  from generate_series(%(first)s::bigint, %(last)s::bigint) g"""
_ACTS = """
insert into menzil.event (created_at, event_type, entity_type, entity_id, actor, via)
select now() - g * interval '3 min', case when g %% 2 = 0 then 'channel.paused' else 'channel.resumed' end,
       'channel', 'c' || g %% %s, 'ada', 'console'
  from generate_series(%s, 1, -1) g"""
_MINUTES = """
insert into menzil.{table} (
  channel_id, at, waiting, in_flight, oldest_s, sent, completed, failed_tries, dead, ended_ms, try_ms)
select c.id, t.at, 100, 5, 12, 60, 58, 3, 1, '{{0,6,30,12,6,3,1,0,0,0,0,0}}', '{{0,6,30,12,6,3,1,0,0,0,0,0}}'
  from generate_series(date_trunc('{unit}', now() - %s::interval), now() - %s::interval, '1 {unit}') t(at)
 cross join (select id from menzil.channel union all select 0) c
 order by t.at, c.id"""


def build(conn: Conn, size: Size) -> Stock:
    """Fill a fresh database. Everything that waits has just been sent: no dequeue has folded it yet."""
    stock = Stock(size)
    ended(conn, size)
    fill.channels(conn, CHANNELS)
    conn.execute(_ENDPOINTS, (CHANNELS,))
    dead(conn, size.dead)
    conn.execute("delete from menzil.pulse_state")
    conn.execute("select menzil._begin_pulse()")  # counting begins here; the minutes before are written below
    waiting(conn, size.waiting)
    around(conn, size)
    known(conn, stock)
    conn.execute("vacuum analyze")
    return stock


def ended(conn: Conn, size: Size) -> None:
    """Five months, the last of them this one, until an hour ago."""
    now = datetime.now(UTC)
    months = [now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)]
    while len(months) < 5:
        months.insert(0, (months[0] - timedelta(days=1)).replace(day=1))
    each, first = size.archived // len(months), 1
    for number, month in enumerate(months):
        until = months[number + 1] if number + 1 < len(months) else max(now - timedelta(hours=1), month)
        step = (until - month) / each
        history.month(conn, month.isoformat(), first, each, step=f"{step.total_seconds():.6f} s", again=10)
        first += each
    conn.execute("select setval('menzil.message_id', %s)", (first - 1,))
    conn.execute("select menzil.maintain()")  # counts how many have ended


def dead(conn: Conn, count: int) -> None:
    """Sent, leased and failed for good, for a few dozen causes."""
    fill.spread(conn, 0, count, CHANNELS)
    while conn.execute(_ERRORS, (CHANNELS,)).fetchone() != (0,):
        pass
    row = conn.execute("select count(*) from menzil.dead_letter").fetchone()
    if row != (count,):
        raise RuntimeError(f"Of {count:,} letters {row} are dead.")


def waiting(conn: Conn, count: int) -> None:
    """One in twenty behind an ordering key, one in twenty on the schedule, the others sent one by one."""
    few = count // 20
    fill.spread(conn, 0, few, CHANNELS, keys=max(few // 10, 1))
    conn.execute(_SCHEDULED, {"channels": CHANNELS, "count": few, "body": text(1)})
    left = count - 2 * few
    for first in range(0, left, CALL):
        last = min(first + CALL, left) - 1
        conn.execute(_SINGLE, {"channels": CHANNELS, "first": first, "last": last, "body": text(first)})


def around(conn: Conn, size: Size) -> None:
    """Workers, acts, schedules, the pulse, and jobs that have done their rounds."""
    hello = "select menzil.worker_hello(%s, 'host.example', %s, '0.2.0', null, 100)"
    for number in range(4):
        conn.execute(hello, (f"worker-{number}", number + 1))
    conn.execute(_ACTS, (CHANNELS, size.acts))
    for number in range(20):
        conn.execute(
            "select menzil.schedule_create(%s, '0 3 * * *', 'UTC', %s, '{}')",
            (f"nightly-{number}", f"c{number % CHANNELS}"),
        )
    hours = f"{size.hours} h"
    conn.execute(_MINUTES.format(table="pulse_minute", unit="minute"), (hours, "1 min"))
    conn.execute(_MINUTES.format(table="pulse_hour", unit="hour"), (f"{size.days} days", hours))
    for _ in range(2 + size.waiting // 50_000):
        conn.execute("update menzil.job set next_at = '-infinity' where name in ('pulse', 'sizes', 'causes')")
        conn.execute("call menzil.run_jobs()")
    while one(conn, "select menzil.job_run('lookups')") >= 1000:
        pass


def known(conn: Conn, stock: Stock) -> None:
    """Messages, a cause and a plan to look at."""
    ids = stock.ids
    sent = "select menzil.send_with_options('c1', '{\"order\": 1}', p_correlation_id => %s)"
    ids["waiting"] = one(conn, sent, CORRELATION)
    ids["archived"] = stock.size.archived // 2
    ids["dead"] = one(conn, "select max(original_message_id) from menzil.dead_letter")
    ids["behind"] = one(conn, "select max(id) from menzil.key_queue where waits = 1")
    ids["scheduled"] = one(conn, "select max(id) from menzil.scheduled")
    stock.cause = one(conn, "select cause_hash from menzil.dead_letter group by 1 order by count(*) desc, 1 limit 1")
    stock.plan = one(
        conn, "select menzil.plan_create('redrive', jsonb_build_object('cause_hash', %s::text))", stock.cause
    )


def one(conn: Conn, statement: str, *values: Any) -> Any:
    """The only value of a statement."""
    row = conn.execute(statement, values or None).fetchone()
    return None if row is None else row[0]
