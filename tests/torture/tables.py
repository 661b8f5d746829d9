"""What the database holds when a torture run is over: everything the checker judges, read in one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

#: Rounds of folding before the tables are read: what settles left in the arrival log belongs to the counters.
ROUNDS = 200


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
    """All of it. `places` counts the rows of the live tables, `messages` those of the bodies."""

    ended: Sequence[Row] = ()
    left: Sequence[Row] = ()
    tries: Sequence[Try] = ()
    dead: Sequence[Dead] = ()
    channels: Sequence[Channel] = ()
    events: Sequence[Event] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)


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
  (select count(*) from menzil.lease l where l.channel_id = c.id and l.epoch = g.epoch),
  case when c.max_size is not null then
    (select coalesce(sum(s.change), 0)::bigint from menzil.size_change s where s.channel_id = c.id) end,
  (select count(*) from menzil.message m where m.channel_id = c.id)
from menzil.channel c left join menzil.gate g on g.channel_id = c.id
where c.dropped_at is null order by c.name"""
_EVENTS = """select id, xid::text::bigint, event_type, entity_id, new_value, created_at from menzil.event_log
 order by id"""
_PLACES = """
select (select count(*) from menzil.message), (select count(*) from menzil.ready),
  (select count(*) from menzil.scheduled), (select count(*) from menzil.lease),
  (select count(*) from menzil.key_queue k where k.place = 1),
  (select count(*) from menzil.key_queue k where k.place = 0),
  (select count(*) from menzil.key_queue k where not exists (select 1 from menzil.message m where m.id = k.id)),
  (select count(*) from menzil.arrival),
  menzil._register('menzil.message_id') - menzil._register('menzil.ended_count')"""
_NAMES = ("message", "ready", "scheduled", "lease", "behind", "heads", "keys_of_nobody", "arrival", "guess")


def read(dsn: str) -> Tables:
    """Fold what is left of the arrival log, then read everything."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        for _ in range(ROUNDS):
            conn.execute("select menzil._fold(clock_timestamp(), true, 2000)")
            if not conn.execute("select exists (select 1 from menzil.arrival)").fetchone()[0]:  # type: ignore[index]
                break
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
            places=dict(zip(_NAMES, rows(_PLACES)[0], strict=True)),
        )
