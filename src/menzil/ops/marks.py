"""For charts: the minutes of several channels, and what people and the queue did meanwhile. Nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from menzil.ops import values
from menzil.ops.op import Op
from menzil.ops.records import Record, records

#: Lines of the event log that are looked through.
MOST = 1_000

_MARKS = """
select e.id, e.created_at, e.event_type, e.entity_type, e.entity_id, e.actor, e.via
  from (select * from menzil.event_log order by id desc limit %s::integer) e
 where e.created_at >= %s::timestamptz and e.created_at < %s::timestamptz
   and (%s::text is null or e.entity_id = %s::text)
 order by e.id desc limit %s::integer"""


def marks(start: datetime, end: datetime, *, entity: str | None = None, limit: int = 100) -> Op[list[Record]]:
    """menzil.event_log: the newest lines of a time, of one channel or endpoint or of all."""
    name = values.optional_text("name", entity)
    bounds = (values.time("start", start), values.time("end", end))
    params = (str(MOST), *bounds, name, name, values.integer("limit", limit))
    return Op(_MARKS, params, records("id at:time what entity_type entity actor via"))


# One row for each channel: a page of a hundred channels would read six thousand.
_MINUTES = """
select p.channel, sum(p.completed)::bigint, sum(p.failed_tries)::bigint,
       coalesce(sum(p.sent) filter (where p.recent), 0)::bigint,
       coalesce(sum(p.completed) filter (where p.recent), 0)::bigint,
       to_jsonb(array_agg(p.minute)), to_jsonb(array_agg(p.completed))
  from (select p.channel, p.completed, p.failed_tries, p.sent, p.at >= v.recent_from and p.at < v.recent_to as recent,
               (date_part('epoch', p.at - v.start) / 60)::integer as minute
          from (select %s::timestamptz as start, %s::timestamptz as recent_from, %s::timestamptz as recent_to) v
         cross join menzil.pulse p
         where p.channel = any (%s::text[]) and p.at >= v.start and p.step = interval '1 min') p
 group by p.channel"""


def minutes(channels: Sequence[str], start: datetime, recent: tuple[datetime, datetime]) -> Op[list[Record]]:
    """menzil.pulse: what passed in several channels since `start`, one row each; at most 48 hours are there.

    `sent_lately` and `completed_lately` are of the minutes from the first time of `recent` to before the second.
    `minutes` are those with any life, counted from `start` in any order, and `completed_then` is how many
    completed in each.
    """
    times = (values.time("start", start), values.time("start", recent[0]), values.time("end", recent[1]))
    params = (*times, values.array([values.text("channel", name) for name in channels]))
    columns = "channel completed failed_tries sent_lately completed_lately minutes:json completed_then:json"
    return Op(_MINUTES, params, records(columns))
