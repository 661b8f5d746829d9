"""Looks for messages: newest first, through a bounded number of them, or by a key that has an index."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from menzil.ops import values
from menzil.ops.op import Op, Rows
from menzil.ops.records import Record, records

#: How many messages one page of a search looks through; the next page goes on from there.
WINDOW = 20_000

LAST_ID = 2**63 - 1

_COLUMNS = """
select q.id, q.status, q.channel, q.priority, q.ordering_key, q.idempotency_key, q.correlation_id, q.num_attempts,
       q.retry_count, q.created_at, q.ended_at, q.bytes, q.last_error"""

# Both find their few rows by an index before anything is sorted.
_BY_IDS = " from menzil._messages q where q.id = any (%s::bigint[]) and q.id < %s::bigint"
_BY_CORRELATION = """
  from menzil.messages_with_correlation(%s::uuid, %s::bigint, %s::integer) c
 cross join lateral (select * from menzil._messages m where m.id = c.id offset 0) q
 where true"""

_MATCHES = """
   and (%s::text is null or q.channel = %s::text) and (%s::text[] is null or q.status = any (%s::text[]))
   and (%s::text is null or q.ordering_key = %s::text) and (%s::text is null or q.idempotency_key = %s::text)
   and (%s::uuid is null or q.correlation_id = %s::uuid)
   and (%s::timestamptz is null or q.created_at >= %s::timestamptz)
   and (%s::timestamptz is null or q.created_at < %s::timestamptz)
   and (%s::text is null or position(lower(%s::text) in lower(q.last_error)) > 0)
 order by q.id desc limit %s::integer"""

_LISTED = (
    "id status channel priority ordering_key idempotency_key correlation_id:uuid num_attempts retry_count "
    "created_at:time ended_at:time bytes last_error"
)


class Wanted:
    """What messages must match; what is None is not asked for."""

    def __init__(
        self,
        *,
        channel: str | None = None,
        status: Sequence[str] | None = None,
        key: str | None = None,
        idem: str | None = None,
        corr: UUID | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        error: str | None = None,
    ) -> None:
        #: In the order of menzil.messages_in_window.
        self.given = (
            values.optional_text("channel", channel),
            None if status is None else values.array(status),
            values.optional_text("ordering key", key),
            values.optional_text("idempotency key", idem),
            values.uuid("correlation id", corr),
            values.time("since", since),
            values.time("until", until),
            values.optional_text("error", error),
        )
        self.params = tuple(value for one in self.given for value in (one, one))


# One look through the window: messages that match, and where they are fewer than asked for, how far it reached.
_LOOKED = (
    "with w as materialized (select w.* from menzil.messages_in_window("
    "%s::bigint, %s::integer, %s::integer, %s::text, %s::text[], %s::text, %s::text, %s::uuid, %s::timestamptz, "
    "%s::timestamptz, %s::text) w)"
    + _COLUMNS
    + """, null::bigint
  from menzil._messages q where q.id = any (array(select w.id from w where w.passed is null))
union all
select w.id, null, null, null, null, null, null, null, null, w.created_at, null, null, null, w.passed
  from w where w.passed is not null"""
)
_READ = records(_LISTED + " passed")


def in_window(
    wanted: Wanted, limit: int, before: int = LAST_ID, window: int = WINDOW
) -> Op[tuple[list[Record], Record | None]]:
    """menzil.messages_in_window with what a list shows of each: messages of a window that match, newest first.

    Where fewer than `limit` match, a record besides: the oldest message of the window, and how many there are.
    """
    params = (values.integer("id", before), values.integer("window", window), str(limit), *wanted.given)

    def read(rows: Rows) -> tuple[list[Record], Record | None]:
        found = _READ(rows)
        passed = [one.pop("passed") for one in found]
        ends = [{**one, "passed": number} for one, number in zip(found, passed, strict=True) if number is not None]
        matching = [one for one, number in zip(found, passed, strict=True) if number is None]
        return sorted(matching, key=lambda one: -one["id"]), ends[0] if ends else None

    return Op(_LOOKED, params, read)


def of_ids(wanted: Wanted, ids: Sequence[int], limit: int, before: int = LAST_ID) -> Op[list[Record]]:
    """menzil._messages: those of these ids that match."""
    chosen = values.numbers([values.integer("id", one) for one in ids])
    params = (chosen, values.integer("id", before), *wanted.params, str(limit))
    return Op(_COLUMNS + _BY_IDS + _MATCHES, params, records(_LISTED))


def of_correlation(wanted: Wanted, corr: UUID, limit: int, before: int = LAST_ID) -> Op[list[Record]]:
    """menzil.messages_with_correlation: those that match; at most WINDOW of the correlation id are looked at."""
    chosen = (values.uuid("correlation id", corr), values.integer("id", before), str(WINDOW))
    return Op(_COLUMNS + _BY_CORRELATION + _MATCHES, (*chosen, *wanted.params, str(limit)), records(_LISTED))


def message_id_at(at: datetime) -> Op[int | None]:
    """menzil.message_id_at."""
    return Op("select menzil.message_id_at(%s::timestamptz)", (values.time("time", at),), lambda rows: rows[0][0])


_WITH_KEY = "select k.id from menzil.messages_with_key(%s::text, %s::text, %s::text, %s::integer) k"


def messages_with_key(
    ordering_key: str | None, idempotency_key: str | None, channel: str | None = None, limit: int = 1000
) -> Op[list[int]]:
    """menzil.messages_with_key."""
    params = (
        values.optional_text("ordering key", ordering_key),
        values.optional_text("idempotency key", idempotency_key),
        values.optional_text("channel", channel),
        values.integer("limit", limit),
    )
    return Op(_WITH_KEY, params, lambda rows: [row[0] for row in rows])
