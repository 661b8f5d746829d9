"""Looks at the tries of one channel over time, and at what its circuit did. Nothing is changed."""

from __future__ import annotations

from datetime import datetime

from menzil.ops import op, values
from menzil.ops.op import Op
from menzil.ops.records import Record, records

#: Messages that are looked through for the tries of one channel.
WINDOW = 20_000

# The bounds are values, not a subquery: the planner knows how few rows lie between them.
_TRIES = """
select t.ended_at, t.outcome, t.status_code, round(greatest(least(t.duration_ms, 9e14), 0), 3)::float8
  from menzil.attempts t
 where t.message_id > %s::bigint and t.message_id <= %s::bigint
   and t.channel = %s::text and t.ended_at >= %s::timestamptz
 order by t.ended_at desc limit %s::integer"""

_CIRCUIT = """
select e.id, e.created_at, e.event_type, e.actor, e.via, e.new_value, e.metadata
  from menzil.event_log e
 where e.entity_type in ('endpoint', 'channel') and e.entity_id = %s::text order by e.id desc limit %s::integer"""


def newest_try() -> Op[int]:
    """menzil.newest_try: the highest id of a message that was tried; 0 where none was."""
    return Op("select coalesce(menzil.newest_try(), 0)", (), op.integer)


def tries(channel: str, since: datetime, top: int, limit: int = 10_000) -> Op[list[Record]]:
    """menzil.attempts: the tries of one channel since a time, among those of WINDOW messages up to the id `top`."""
    params = (
        values.integer("id", top - WINDOW),
        values.integer("id", top),
        values.text("channel", channel),
        values.time("since", since),
        values.integer("limit", limit),
    )
    return Op(_TRIES, params, records("at:time outcome status_code duration_ms"))


def happened(endpoint: str, limit: int = 500) -> Op[list[Record]]:
    """menzil.event_log: what happened to one endpoint, newest first."""
    params = (values.text("endpoint", endpoint), values.integer("limit", limit))
    return Op(_CIRCUIT, params, records("id at:time what actor via new_value:json metadata:json"))
