"""What tests ask of a queue: what was sent, what waits, and to wait no longer. For the owner of the schema."""

from __future__ import annotations

from collections.abc import Iterable

from menzil.ops import op, values
from menzil.ops.op import Op
from menzil.ops.records import Record, records

_COLUMNS = (
    "id status channel payload:json content priority ordering_key idempotency_key correlation_id:uuid headers:json "
    "metadata:json created_at:time scheduled_at:time expires_at:time num_attempts retry_count last_error"
)
_SENT = """
select m.id, m.status, m.channel, m.payload, m.content, m.priority, m.ordering_key, m.idempotency_key, m.correlation_id,
       m.headers, m.metadata, m.created_at, m.scheduled_at, m.expires_at, m.num_attempts, m.retry_count, m.last_error
  from menzil._message_in_full m where %s::text is null or m.channel = %s::text order by m.id"""

# The channels of handlers by their names, endpoints by what they are.
_WAITING = """
select count(*) from menzil.queue q
 where q.status = 'pending' and (q.channel = any (%s::text[]) or (%s::boolean and q.endpoint is not null))"""

# Materialized: message_retry_now changes the tables that the view reads.
_HURRY = """
with waiting as materialized (
  select q.id from menzil.queue q
   where q.status = 'pending' and coalesce(q.next_retry_at, q.scheduled_at) > clock_timestamp()
     and (q.channel = any (%s::text[]) or (%s::boolean and q.endpoint is not null)))
select count(*) filter (where menzil.message_retry_now(w.id)) from waiting w"""

_END_RESTS = """
with resting as materialized (
  select distinct q.endpoint as name from menzil.queue q
   where q.status = 'pending' and q.endpoint is not null and (q.channel = any (%s::text[]) or %s::boolean))
select count(menzil.reset_circuit_breaker(r.name)::text) from resting r"""


def sent(channel: str | None) -> Op[list[Record]]:
    """menzil._message_in_full: all messages of a channel that this transaction sees, the oldest first."""
    name = values.optional_text("channel", channel)
    return Op(_SENT, (name, name), records(_COLUMNS))


def waiting(channels: Iterable[str], *, endpoints: bool) -> Op[int]:
    """menzil.queue: how many messages of these channels wait."""
    return Op(_WAITING, _whose(channels, endpoints), op.integer)


def hurry(channels: Iterable[str], *, endpoints: bool) -> Op[int]:
    """menzil.message_retry_now for every message of these channels that waits for a time; how many there were."""
    return Op(_HURRY, _whose(channels, endpoints), op.integer)


def end_rests(channels: Iterable[str], *, endpoints: bool) -> Op[int]:
    """menzil.reset_circuit_breaker for every endpoint whose messages wait; how many there were."""
    return Op(_END_RESTS, _whose(channels, endpoints), op.integer)


def _whose(channels: Iterable[str], endpoints: bool) -> tuple[str, str]:
    return values.array(channels), "true" if endpoints else "false"
