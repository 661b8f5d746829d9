"""Looks at one message as a task: where it stands, what it returned, and every try. Nothing is changed."""

from __future__ import annotations

from menzil.ops import op, values
from menzil.ops.op import Op
from menzil.ops.records import Record, record, records

_TASK = """
select m.id, m.status, m.channel, m.payload, m.created_at, m.scheduled_at, m.leased_at, m.ended_at, m.worker,
       m.last_error, m.response
  from menzil._message_in_full m where m.id = %s::bigint"""
_TASK_COLUMNS = (
    "id status channel payload:json created_at:time scheduled_at:time leased_at:time ended_at:time worker last_error "
    "response:json"
)

_TRIES = """
select t.outcome, t.leased_at, t.worker, t.error, t.response
  from menzil.attempts t where t.message_id = %s::bigint order by t.attempt limit 1000"""


def task(message_id: int) -> Op[Record | None]:
    """menzil._message_in_full, with numbers as Python reads them."""
    return Op(_TASK, (values.integer("message id", message_id),), record(_TASK_COLUMNS))


def tries(message_id: int) -> Op[list[Record]]:
    """menzil.attempts of one message, the first of them first."""
    columns = "outcome leased_at:time worker error response:json"
    return Op(_TRIES, (values.integer("message id", message_id),), records(columns))


def most_retries() -> Op[int]:
    """menzil.settings: how many retries a channel allows that has no policy of its own."""
    text = "select value::integer from menzil.settings where name = 'default_max_retries'"
    return Op(text, (), op.integer)


def has_channel(name: str) -> Op[bool]:
    """menzil.channels: whether there is one of this name."""
    text = "select exists (select from menzil.channels where name = %s::text)"
    return Op(text, (values.text("channel", name),), op.boolean)


def archives() -> Op[bool]:
    """menzil.settings: whether completed messages are kept."""
    text = "select value::boolean from menzil.settings where name = 'archive_completed'"
    return Op(text, (), op.boolean)


def shown_settings() -> Op[dict[str, str]]:
    """menzil.settings: what people may see of bodies."""
    text = "select name, value from menzil.settings where name in ('redact', 'console_payloads')"
    return Op(text, (), dict)
