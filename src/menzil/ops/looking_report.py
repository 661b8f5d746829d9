"""What a report of deliveries reads from the database. Nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from menzil.ops import values
from menzil.ops.op import Op, Rows
from menzil.ops.records import Record, records

_BETWEEN = "menzil.archive_between(coalesce(%s::timestamptz, '-infinity'), coalesce(%s::timestamptz, 'infinity')) a"

_SPAN = f"""
select count(*), coalesce(extract(epoch from min(s.created_at)) * 1000000, 0)::bigint,
       coalesce(extract(epoch from max(s.created_at)) * 1000000, 0)::bigint
  from (select a.created_at from {_BETWEEN} limit %s::bigint) s"""

_ENDED = f"""
select a.id, a.channel, a.status, (extract(epoch from a.created_at) * 1000000)::bigint,
       (extract(epoch from a.scheduled_at) * 1000000)::bigint,
       (extract(epoch from a.first_leased_at) * 1000000)::bigint,
       (extract(epoch from a.ended_at) * 1000000)::bigint, a.num_attempts, a.last_error
  from {_BETWEEN}"""

_EVENTS = """
select e.id, e.entity_id, e.event_type, e.created_at from menzil.event_log e
 where e.event_type = any (%s::text[]) order by e.created_at, e.id"""


def ended_span(start: datetime | None, end: datetime | None, most: int) -> Op[tuple[int, int, int]]:
    """How many messages created in this range have ended, at most so many, and when the first and newest were made."""
    params = (values.time("start", start), values.time("end", end), str(most))
    return Op(_SPAN, params, _read_span)


def ended(start: datetime | None, end: datetime | None) -> Op[Rows]:
    """Ended messages created in this range, without bodies; times are microseconds since 1970."""
    return Op(_ENDED, (values.time("start", start), values.time("end", end)), lambda rows: rows)


def events_named(names: Sequence[str]) -> Op[list[Record]]:
    """Lines of the event log of these kinds, in order."""
    params = (values.array([values.text("event type", name) for name in names]),)
    return Op(_EVENTS, params, records("id channel event_type created_at:time"))


def _read_span(rows: Rows) -> tuple[int, int, int]:
    number, first, newest = rows[0]
    return number, first, newest
