"""Looks at the event log: what operators and the queue itself did, newest first. Nothing is changed."""

from __future__ import annotations

from menzil.ops import values
from menzil.ops.op import Op
from menzil.ops.records import Record, records

#: Events that one page looks through; the next page goes on from there.
WINDOW = 20_000

_EVENTS = """
select e.id, e.created_at, e.event_type, e.entity_type, e.entity_id, e.actor, e.via, e.old_value, e.new_value,
       e.metadata
  from (select * from menzil.event_log where id < %s::bigint order by id desc limit %s::integer) e
 where (%s::text is null or e.event_type = %s::text or e.event_type like replace(%s::text, '*', '%%'))
   and (%s::text is null or e.entity_id = %s::text) and (%s::text is null or e.actor = %s::text)
   and (%s::text is null or e.via = %s::text)
 order by e.id desc limit %s::integer"""

_REACH = """
select min(e.id), count(*)
  from (select id from menzil.event_log where id < %s::bigint order by id desc limit %s::integer) e"""

_LAST_ID = 2**63 - 1


def events(
    *,
    limit: int,
    before: int | None = None,
    what: str | None = None,
    entity: str | None = None,
    actor: str | None = None,
    via: str | None = None,
) -> Op[list[Record]]:
    """menzil.event_log: those of a window that match; a star in `what` stands for anything."""
    kind = values.optional_text("event type", what)
    asked = [values.optional_text(name, value) for name, value in (("entity", entity), ("actor", actor), ("via", via))]
    place = values.integer("id", _LAST_ID if before is None else before)
    params = (
        place,
        str(WINDOW),
        kind,
        kind,
        kind,
        *(one for one in asked for _ in range(2)),
        values.integer("limit", limit),
    )
    columns = (
        "id created_at:time event_type entity_type entity_id actor via old_value:exact new_value:exact metadata:exact"
    )
    return Op(_EVENTS, params, records(columns))


def reach(before: int | None = None) -> Op[int | None]:
    """Tell the least id that events() looked at; None when that was all there is."""
    params = (values.integer("id", _LAST_ID if before is None else before), str(WINDOW))
    return Op(_REACH, params, lambda rows: rows[0][0] if rows[0][1] >= WINDOW else None)
