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


_MINUTES = """
select p.at, p.channel, p.sent, p.completed, p.failed_tries, p.dead
  from menzil.pulse p
 where p.channel = any (%s::text[]) and p.at >= %s::timestamptz and p.step = interval '1 min'
 order by p.at"""


def minutes(channels: Sequence[str], start: datetime) -> Op[list[Record]]:
    """menzil.pulse: the minutes of several channels since then; at most 48 hours are there."""
    params = (values.array([values.text("channel", name) for name in channels]), values.time("start", start))
    return Op(_MINUTES, params, records("at:time channel sent completed failed_tries dead"))
