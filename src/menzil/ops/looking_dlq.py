"""Looks at dead letters: a list by id, and one with everything it holds. Nothing is changed."""

from __future__ import annotations

from datetime import datetime, timedelta

from menzil.ops import values
from menzil.ops.looking import CAP, SCAN
from menzil.ops.op import Op
from menzil.ops.records import Record, record, records

_ROW = """
d.id, d.original_message_id, d.endpoint_name, d.status, d.priority::integer, d.ordering_key, d.correlation_id,
d.num_attempts, d.retry_count, d.created_at, d.failed_at, d.redriven_at, d.redriven_id, d.blocks_key, d.last_error"""
_LIST = f"""
select {_ROW}
  from (select * from menzil.dlq where id < %s::bigint order by id desc limit %s::integer) d
 where (%s::text is null or d.endpoint_name = %s::text) and (%s::text is null or d.status = %s::text)
 order by d.id desc limit %s::integer"""
_LISTED = (
    "id original_message_id endpoint_name status priority ordering_key correlation_id:uuid num_attempts retry_count "
    "created_at:time failed_at:time redriven_at:time redriven_id blocks_key last_error"
)


def dead_letters(
    *, limit: int, endpoint: str | None = None, status: str | None = None, before: int = 2**63 - 1
) -> Op[list[Record]]:
    """menzil.dlq, newest first; a filter looks through SCAN of them."""
    name, word = values.optional_text("endpoint", endpoint), values.optional_text("status", status)
    place, most = values.integer("id", before), values.integer("limit", limit)
    return Op(_LIST, (place, str(SCAN), name, name, word, word, most), records(_LISTED))


_ONE = """
select d.id, d.original_message_id, d.endpoint_name, d.protocol, d.status, d.failed_at, d.redriven_at, d.redriven_id,
       d.payload, d.content, d.priority::integer, d.ordering_key, d.idempotency_key, d.correlation_id, d.headers,
       d.metadata, d.scheduled_at, d.expires_at, d.created_at, d.num_attempts, d.retry_count, d.last_error, d.blocks_key
  from menzil.dlq d where d.id = %s::bigint"""
_COLUMNS = (
    "id original_message_id endpoint_name protocol status failed_at:time redriven_at:time redriven_id payload:exact "
    "content priority ordering_key idempotency_key correlation_id:uuid headers:exact metadata:exact scheduled_at:time "
    "expires_at:time created_at:time num_attempts retry_count last_error blocks_key"
)


def dead_letter(dlq_id: int) -> Op[Record | None]:
    """menzil.dlq, one of them with its body."""
    return Op(_ONE, (values.integer("id of a dead letter", dlq_id),), record(_COLUMNS))


_OLD = """
select count(*), count(*) filter (where d.status = 'failed'), min(d.failed_at), max(d.failed_at)
  from (select d.status, d.failed_at from menzil.dlq d, menzil.settings s
         where s.name = 'dlq_retention_days' and d.failed_at < clock_timestamp() - s.value::integer * interval '1 day'
         limit %s::integer) d"""


def old_dead_letters(cap: int = CAP) -> Op[Record]:
    """What menzil.cleanup_dlq would delete, counted up to a cap."""
    read = records("messages failed oldest:time newest:time")
    return Op(_OLD, (values.integer("cap", cap),), lambda rows: read(rows)[0])


_CAUSE = "select d.cause from menzil.dlq d where d.id = %s::bigint and d.cause_hash = %s::text"


def cause_of_letter(dlq_id: int, cause_hash: str) -> Op[str | None]:
    """menzil.dlq: the text of a cause, from one letter that has it; None where that letter is gone."""
    params = (values.integer("id of a dead letter", dlq_id), values.text("cause", cause_hash))
    return Op(_CAUSE, params, lambda rows: rows[0][0] if rows else None)


_OF_CAUSE = f"""
select {_ROW}
  from (select * from menzil.dlq where id < %s::bigint order by id desc limit %s::integer) d
 where d.cause_hash = %s::text and (%s::text is null or d.endpoint_name = %s::text)
 order by d.id desc limit %s::integer"""


def letters_of_cause(
    cause_hash: str, *, limit: int, endpoint: str | None = None, before: int = 2**63 - 1, scan: int = SCAN
) -> Op[list[Record]]:
    """menzil.dlq: the letters of one cause among the newest, newest first."""
    name = values.optional_text("endpoint", endpoint)
    params = (
        values.integer("id", before),
        values.integer("scan", scan),
        values.text("cause", cause_hash),
        name,
        name,
        values.integer("limit", limit),
    )
    return Op(_OF_CAUSE, params, records(_LISTED))


_LETTER_OF = """
select d.id, d.endpoint_name, d.status, d.redriven_id, d.ordering_key, d.blocks_key
  from menzil.dlq d where d.original_message_id = %s::bigint"""


def letter_of(message_id: int) -> Op[Record | None]:
    """menzil.dlq: the dead letter of one message."""
    columns = "id endpoint_name status redriven_id ordering_key blocks_key"
    return Op(_LETTER_OF, (values.integer("message id", message_id),), record(columns))


_DEATHS = "select cause_hash, at, letters from menzil.dlq_deaths(%s::timestamptz, %s::interval, %s::integer)"


def deaths(start: datetime, step: timedelta, scan: int = 20_000) -> Op[list[Record]]:
    """menzil.dlq_deaths: how many died of each cause in each step, among the newest letters."""
    params = (values.time("start", start), values.interval("step", step), values.integer("scan", scan))
    return Op(_DEATHS, params, records("cause_hash at:time letters"))
