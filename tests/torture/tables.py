"""What the database holds when a torture run is over: everything the checker judges, read in one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

#: Rounds of folding before the tables are read: what settles left in the log belongs to the counters.
ROUNDS = 200
#: How often the pulse is asked to count what it lacks.
COUNTS = 10


class Row(NamedTuple):
    """A message that ended, or one that is left in the queue (status pending or processing, no end)."""

    id: int
    ref: str | None
    channel: str
    status: str
    key: str | None
    idem: str | None
    num_attempts: int
    retry_count: int
    scheduled_at: datetime | None
    expires_at: datetime | None
    first_leased_at: datetime | None
    leased_at: datetime | None
    ended_at: datetime | None
    xid: int | None
    error: str | None
    copy_of: int | None  # redriven or replayed: it has an original of its own


class Try(NamedTuple):
    """A lease from its begin to its end, by the clock of the server."""

    id: int
    attempt: int
    channel: str
    outcome: str
    leased_at: datetime
    ended_at: datetime
    worker: str | None
    error: str | None


class Dead(NamedTuple):
    """A dead letter."""

    id: int
    status: str
    blocks_key: bool


class Channel(NamedTuple):
    """A channel with its limits, its counters, and what they should be."""

    name: str
    is_endpoint: bool
    max_concurrency: int | None
    release_interval_ms: int
    release_count: int
    on_dead: str
    max_retries: int | None
    in_flight: int | None
    leases: int
    size: int | None
    messages: int


class Event(NamedTuple):
    """A line of the event log."""

    id: int
    xid: int
    kind: str
    name: str | None
    new: Mapping[str, Any] | None
    at: datetime


@dataclass(frozen=True)
class Tables:
    """All of it. `places` counts live messages, what stands in the tables that hold them, and ends that are wrong."""

    ended: Sequence[Row] = ()
    left: Sequence[Row] = ()
    tries: Sequence[Try] = ()
    dead: Sequence[Dead] = ()
    channels: Sequence[Channel] = ()
    events: Sequence[Event] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)
    miscounted: Sequence[str] = ()


_ROW = """id, payload ->> 'ref', channel, status, ordering_key, idempotency_key, num_attempts, retry_count,
 scheduled_at, expires_at"""
_ENDED = f"""select {_ROW}, first_leased_at, leased_at, ended_at, ended_xid::text::bigint, last_error,
 coalesce(redrive_of, replay_of) from menzil.archive order by id"""
_LEFT = f"""select {_ROW}, null::timestamptz, processing_started_at, null::timestamptz, null::bigint, last_error,
 coalesce(redrive_of, replay_of) from menzil.queue order by id"""
_TRIES = """select message_id, attempt, channel, outcome, leased_at, ended_at, worker, error from menzil.attempts
 order by message_id, attempt, leased_at"""
_DEAD = "select original_message_id, status, blocks_key from menzil.dlq order by 1"
_CHANNELS = """
select c.name, c.protocol is not null, c.max_concurrency, c.release_interval_ms, c.release_count, c.on_dead,
  (c.retry_policy ->> 'max_retries')::integer,
  case when c.max_concurrency is not null then g.in_flight end,
  (select coalesce(sum(coalesce(cardinality(l.ids), l.hi_id - l.lo_id + 1)), 0)::bigint
    from menzil.lease l where l.channel_id = c.id and l.epoch = g.epoch),
  case when c.max_size is not null then
    (select coalesce(sum(s.change), 0)::bigint from menzil.size_change s where s.channel_id = c.id) end,
  (select count(*) from menzil.message m where m.channel_id = c.id and (menzil._end_of(m.id)).lo_id is null)
from menzil.channel c left join menzil.gate g on g.channel_id = c.id
where c.dropped_at is null order by c.name"""
_EVENTS = """select id, xid::text::bigint, event_type, entity_id, new_value, created_at from menzil.event_log
 order by id"""
_UNFOLDED = "select exists (select 1 from menzil.line) or exists (select 1 from menzil.aside)"
# Every place in which a live message can stand, message by message. Ends are read as they were written, not through the
# archive, which shows one end of each message.
_PLACES = """
with run as (
  select u.id from menzil.run r
    cross join lateral (select l.* from menzil.lane l where l.channel_id = r.channel_id and l.rank = r.rank
                         order by l.v desc limit 1) l
    cross join lateral unnest(coalesce(r.ids, array(select generate_series(r.first_id, r.first_id + r.n - 1))))
      with ordinality u(id, n)
   where u.n > case when (r.due_at, r.first_id) = (l.head_due, l.head_id) then l.gone else 0 end
), line as (
  select u.id from (select * from menzil.line union all select * from menzil.aside) n
    cross join lateral unnest(coalesce(n.ids, array(select generate_series(n.first_id, n.first_id + n.n - 1)))) u(id)
   where n.rank is not null and n.flags & 64 = 0
), place as (
  select id from run union all select id from line union all select id from menzil.scheduled
  union all select u.id from menzil.lease l
    cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) u(id)
  union all select k.id from menzil.key_queue k where k.waits = 1
), standing as (
  select p.id, count(*) as times from place p where p.id not in (select w.id from menzil.withdrawn w) group by p.id
), ended as (
  select u.id, count(*) as times from menzil.done d
    cross join lateral unnest(coalesce(d.ids, array(select generate_series(d.lo_id, d.hi_id)))) u(id) group by u.id
), live as (
  select m.id from menzil.message m where m.id not in (select e.id from ended e)
)
select (select count(*) from live), (select count(*) from standing),
  (select count(*) from live l where l.id not in (select s.id from standing s)),
  (select count(*) from standing s where s.id not in (select l.id from live l)),
  (select count(*) from standing s where s.times > 1),
  (select count(*) from ended e where e.times > 1),
  (select count(*) from menzil.done d where d.hi_id - d.lo_id >= 4096 or d.n <> coalesce(cardinality(d.ids), d.n)
      or d.ids is null and d.n <> d.hi_id - d.lo_id + 1),
  (select count(*) from menzil.run r
    cross join lateral (select l.* from menzil.lane l where l.channel_id = r.channel_id and l.rank = r.rank
                         order by l.v desc limit 1) l
   where (r.due_at, r.first_id) < (l.head_due, l.head_id) or l.tail_due is null),
  (select count(*) from menzil.key_queue k where k.id in (select e.id from ended e)),
  (select count(*) from menzil.line) + (select count(*) from menzil.aside),
  menzil._register('menzil.message_id') - menzil._register('menzil.ended_count')"""
# Sums of the pulse, minutes and hours, that differ from what the tables hold, and by how much.
_MISCOUNTED = """
select format('%s of channel %s by %s', what, channel_id, sum(n)) from (
  select m.channel_id, 'sent' as what, -1 as n from menzil.message m
  union all select m.channel_id, d.status, -1 from menzil.done d
    cross join lateral unnest(coalesce(d.ids, array(select generate_series(d.lo_id, d.hi_id)))) u(id)
    join menzil.message m on m.id = u.id
  union all select t.channel_id, case t.outcome when 'deferred' then 'deferred' else 'tried' end, -1
    from menzil.attempt t
  union all select p.channel_id, u.what, u.n
    from (select channel_id, sent, completed, dead, expired, cancelled, deferred, failed_tries from menzil.pulse_minute
          union all
          select channel_id, sent, completed, dead, expired, cancelled, deferred, failed_tries from menzil.pulse_hour) p
    cross join lateral (values ('sent', p.sent), ('completed', p.completed), ('failed', p.dead),
      ('expired', p.expired), ('cancelled', p.cancelled), ('deferred', p.deferred), ('tried', p.failed_tries))
      u(what, n) where p.channel_id <> 0) q
group by channel_id, what having sum(n) <> 0 order by 1"""
NAMES = (
    *("live", "standing", "placeless", "ghosts", "twice", "ended_twice", "wrong_ends", "hidden_runs"),
    *("keys_of_nobody", "lines", "guess"),
)


def _count_the_rest(conn: psycopg.Connection[Any]) -> int:
    """A round of the pulse, after that of a session that is still at it: beside one it would count nothing."""
    with conn.transaction():
        conn.execute("select from menzil.pulse_state for update")
        written: int = conn.execute("select menzil._pulse(100000)").fetchone()[0]
    return written


def _count_all(conn: psycopg.Connection[Any]) -> None:
    """Let the pulse count until it agrees with the tables. What it missed or counted twice no later round repairs.

    A transaction of a process that is gone may still commit after a round, while the server has not noticed its end.
    """
    for _ in range(COUNTS):
        while _count_the_rest(conn) >= 1000:
            pass
        if not conn.execute(_MISCOUNTED).fetchone():
            return


def read(dsn: str) -> Tables:
    """Fold what is left of the log, let the pulse count the rest, then read everything."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        for _ in range(ROUNDS):
            # A fold that fails leaves lines behind, which are counted.
            with suppress(psycopg.errors.IntegrityError):
                conn.execute("select menzil._fold(clock_timestamp(), true, 2000)")
            if not conn.execute(_UNFOLDED).fetchone()[0]:
                break
        _count_all(conn)
        conn.execute("begin isolation level repeatable read read only")

        def rows(text: str) -> list[Any]:
            return conn.execute(text).fetchall()

        return Tables(
            ended=[Row(*row) for row in rows(_ENDED)],
            left=[Row(*row) for row in rows(_LEFT)],
            tries=[Try(*row) for row in rows(_TRIES)],
            dead=[Dead(*row) for row in rows(_DEAD)],
            channels=[Channel(*row) for row in rows(_CHANNELS)],
            events=[Event(*row) for row in rows(_EVENTS)],
            settings=dict(rows("select name, value from menzil.settings")),
            places=dict(zip(NAMES, rows(_PLACES)[0], strict=True)),
            miscounted=[text for (text,) in rows(_MISCOUNTED)],
        )
