"""Where a message that is sent once more came from: its channel, its id, and the trace it was created in."""

from __future__ import annotations

from typing import NamedTuple

from menzil.ops import op, values
from menzil.ops.op import Op, Rows


class Origin(NamedTuple):
    """A message that is redriven or replayed; the trace is as its sender wrote it, if at all."""

    id: int
    channel: str
    traceparent: str | None
    tracestate: str | None


class Origins(NamedTuple):
    """How to find the origin. A role that may redrive might not read the view: in a transaction of the caller an error
    would end everything, so that is asked first."""

    readable: Op[bool]
    look: Op[Origin | None]


_OF_DEAD_LETTER = """
select d.original_message_id, d.endpoint_name, d.metadata ->> 'traceparent', d.metadata ->> 'tracestate'
  from menzil.dlq d where d.id = %s::bigint"""
_OF_ENDED = """
select a.id, a.channel, a.metadata ->> 'traceparent', a.metadata ->> 'tracestate'
  from menzil.archive a where a.id = %s::bigint limit 1"""


def of_dead_letter(dlq_id: int) -> Origins:
    """The message of a dead letter, from menzil.dlq."""
    readable = Op("select has_table_privilege('menzil.dlq', 'select')", (), op.boolean)
    return Origins(readable, Op(_OF_DEAD_LETTER, (values.integer("dlq id", dlq_id),), _origin))


def of_ended(message_id: int) -> Origins:
    """A message that has ended, from menzil.archive."""
    readable = Op("select has_table_privilege('menzil.archive', 'select')", (), op.boolean)
    return Origins(readable, Op(_OF_ENDED, (values.integer("message id", message_id),), _origin))


def _origin(rows: Rows) -> Origin | None:
    return Origin(*rows[0]) if rows else None
