"""Looks at messages, live and ended: lists by id, and everything about one of them. Nothing is changed."""

from __future__ import annotations

from menzil.model.errors import InvalidValueError
from menzil.ops import op, values
from menzil.ops.looking import SCAN
from menzil.ops.op import Op
from menzil.ops.records import Record, record, records

LIVE = ("pending", "processing")
ENDED = ("completed", "failed", "expired", "cancelled")
STATUSES = (*LIVE, *ENDED)

_LISTED = (
    "id status channel priority ordering_key correlation_id:uuid num_attempts retry_count created_at:time "
    "ended_at:time last_error"
)

# Newest first. The inner limit is the promise that no filter reads the whole history; what lies beyond it is the next
# page's, and reach() says where that begins.
_MESSAGES = """
select q.id, q.status, q.channel, q.priority, q.ordering_key, q.correlation_id, q.num_attempts, q.retry_count,
       q.created_at, q.ended_at, q.last_error
  from (select * from menzil._messages where id < %s::bigint order by id desc limit %s::integer) q
 where (%s::text is null or q.channel = %s::text) and (%s::text is null or q.status = %s::text)
 order by q.id desc limit %s::integer"""

# Those in flight are few, so they are sought from their side.
_PROCESSING = """
select q.id, q.status, q.channel, q.priority, q.ordering_key, q.correlation_id, q.num_attempts, q.retry_count,
       q.created_at, null::timestamptz, q.last_error
  from menzil.queue q
 where q.processing_started_at is not null and q.id < %s::bigint and (%s::text is null or q.channel = %s::text)
 order by q.id desc limit %s::integer"""

_LAST_ID = 9223372036854775807


def messages(
    *, limit: int, channel: str | None = None, status: str | None = None, before: int | None = None, scan: int = SCAN
) -> Op[list[Record]]:
    """menzil._messages, newest first: a page of it."""
    if status is not None and status not in STATUSES:
        raise InvalidValueError(f"{status!r} is not a status.", hint=f"use one of {', '.join(STATUSES)}")
    name = values.optional_text("channel", channel)
    place, most = values.integer("id", _LAST_ID if before is None else before), values.integer("limit", limit)
    if status == "processing":
        return Op(_PROCESSING, (place, name, name, most), records(_LISTED))
    params = (place, values.integer("scan", scan), name, name, status, status, most)
    return Op(_MESSAGES, params, records(_LISTED))


def demand_channel(name: str) -> Op[None]:
    """menzil.archive_span of no time at all: it refuses a name that no channel ever had."""
    return Op("select menzil.archive_span(now(), now(), %s::text)", (values.text("channel", name),), op.nothing)


_REACH = """
select min(q.id), count(*)
  from (select id from menzil._messages where id < %s::bigint order by id desc limit %s::integer) q"""


def reach(before: int | None = None, scan: int = SCAN) -> Op[int | None]:
    """Tell the least id that messages() looked at; None when that was all there is."""
    params = (values.integer("id", _LAST_ID if before is None else before), values.integer("scan", scan))
    return Op(_REACH, params, lambda rows: rows[0][0] if rows[0][1] >= scan else None)


_MESSAGE = (
    "id status channel payload:exact content priority ordering_key idempotency_key correlation_id:uuid headers:exact "
    "metadata:exact created_at:time scheduled_at:time next_retry_at:time expires_at:time leased_at:time unlock_at:time "
    "ended_at:time num_attempts retry_count worker last_error redrive_of replay_of"
)
_ONE = """
select m.id, m.status, m.channel, m.payload, m.content, m.priority, m.ordering_key, m.idempotency_key, m.correlation_id,
       m.headers, m.metadata, m.created_at, m.scheduled_at, m.next_retry_at, m.expires_at, m.leased_at, m.unlock_at,
       m.ended_at, m.num_attempts, m.retry_count, m.worker, m.last_error, m.redrive_of, m.replay_of, m.state, m.response
  from menzil._message_in_full m where m.id = %s::bigint"""


def message(message_id: int) -> Op[Record | None]:
    """menzil._message_in_full: one message with its body, live or ended, its state and what it was answered."""
    return Op(_ONE, (values.integer("message id", message_id),), record(f"{_MESSAGE} state response:exact"))


_ATTEMPTS = """
select t.attempt, t.outcome, t.leased_at, t.ended_at, round(greatest(least(t.duration_ms, 9e14), -9e14), 3)::float8,
       t.status_code, t.worker, t.error, t.response
  from menzil.attempts t where t.message_id = %s::bigint order by t.attempt desc limit %s::integer"""


def attempts(message_id: int, limit: int = 1000) -> Op[list[Record]]:
    """menzil.attempts of one message, the newest of them, in order."""
    read = records("attempt outcome leased_at:time ended_at:time duration_ms status_code worker error response:exact")
    params = (values.integer("message id", message_id), values.integer("limit", limit))
    return Op(_ATTEMPTS, params, lambda rows: read(rows)[::-1])


#: Messages in flight that are looked at for a list of leases.
LEASES = 2_000
_LEASES = """
select q.worker, count(*), min(q.processing_started_at), min(q.unlock_at)
  from (select worker, processing_started_at, unlock_at
          from menzil.queue where status = 'processing' limit %s::integer) q
 group by 1 order by 2 desc, 1 limit 100"""


def leases(most: int = LEASES) -> Op[list[Record]]:
    """menzil.queue: how many messages each worker has leased, since when, and when the first lease runs out."""
    read = records("worker messages oldest_at:time runs_out_at:time")
    return Op(_LEASES, (values.integer("limit", most),), read)
