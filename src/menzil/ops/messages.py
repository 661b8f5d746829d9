"""One message by its id, or the next ones of a channel, without taking a lease."""

from __future__ import annotations

from functools import partial

from menzil.model.message import Message
from menzil.model.status import Status
from menzil.model.wire import Loads, json_loads, read_time
from menzil.ops import op, values
from menzil.ops.consuming import read_messages
from menzil.ops.op import Op, Rows

_STATUS = """
select id, status, channel, num_attempts, retry_count, last_error,
  created_at, scheduled_at, next_retry_at, unlock_at, expires_at, ended_at
from menzil.message_status(%s::bigint)"""

_PEEK = """
select id, channel, content, payload, state, num_attempts, headers, correlation_id, metadata, ordering_key, priority,
  retry_count, created_at, scheduled_at, expires_at, null::timestamptz, null::bigint
from menzil.message_peek(%s::text, %s::integer)"""


def status(message_id: int) -> Op[Status]:
    """menzil.message_status."""
    return Op(_STATUS, (values.integer("message id", message_id),), _read_status)


def _read_status(rows: Rows) -> Status:
    (row,) = rows
    times = [None if raw is None else read_time(raw) for raw in row[6:]]
    return Status(*row[:6], *times)


def peek(channel: str, limit: int = 10, *, loads: Loads = json_loads) -> Op[list[Message]]:
    """menzil.message_peek."""
    params = (values.text("channel", channel), values.integer("limit", limit))
    return Op(_PEEK, params, partial(read_messages, loads))


def cancel(message_id: int) -> Op[bool]:
    """menzil.message_cancel."""
    return Op("select menzil.message_cancel(%s::bigint)", (values.integer("message id", message_id),), op.boolean)


def retry_now(message_id: int) -> Op[bool]:
    """menzil.message_retry_now."""
    return Op("select menzil.message_retry_now(%s::bigint)", (values.integer("message id", message_id),), op.boolean)


def erase(message_id: int) -> Op[bool]:
    """menzil.message_erase."""
    return Op("select menzil.message_erase(%s::bigint)", (values.integer("message id", message_id),), op.boolean)
