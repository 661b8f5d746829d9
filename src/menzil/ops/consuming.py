"""DEQUEUE and what follows: complete, defer, fail, heartbeat; one by one and in batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

from menzil.model.durations import Seconds
from menzil.model.errors import MissingValueError, NotInFlightError, StaleLeaseError, UsageError
from menzil.model.message import Message
from menzil.model.options import Leased
from menzil.model.outcome import Defer, Fail, LeaseOutcome, Response, Settlement
from menzil.model.wire import Loads, json_dumps, json_loads
from menzil.ops import op, values
from menzil.ops.op import Op, Rows

# The escape itself, not the letters u0000 behind an escaped backslash, as an answer in JSON may hold them.
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")

_DEQUEUE = """
select id, channel, content, payload, state, num_attempts, headers, correlation_id, metadata, ordering_key, priority,
  retry_count, created_at, scheduled_at, expires_at, unlock_at, batch
from menzil.message_dequeue(%s::bigint, %s::integer, %s::text[], %s::text, %s::boolean, %s::boolean, %s::text[])"""
_NEXT = """
select id, channel, content, payload, state, num_attempts, headers, correlation_id, metadata, ordering_key, priority,
  retry_count, created_at, scheduled_at, expires_at, unlock_at, batch, outcome
from menzil.message_next(%s::bigint[], %s::bigint[], %s::bigint, %s::integer, %s::text[], %s::text, %s::boolean,
  %s::bigint[], %s::text[])"""

#: The messages, and what could not be completed.
Following = tuple[list[Message], list[LeaseOutcome]]

_COMPLETE = "select menzil.message_complete(%s::bigint, %s::bigint)"
_COMPLETE_MANY = """
select id, outcome from menzil.message_complete(%s::bigint[], %s::bigint[], %s::jsonb[], %s::bigint[])"""

# Delays are added by the database: its clock is the one that decides when they are over.
_DEFER = """
select menzil.message_defer(%s::bigint, %s::bigint,
  coalesce(%s::timestamptz, clock_timestamp() + make_interval(secs => %s::float8)), %b::bytea)"""
_DEFER_MANY = """
select id, outcome from menzil.message_defer(%s::bigint[], %s::bigint[], (
    select array_agg(coalesce(w.at, clock_timestamp() + make_interval(secs => w.delay)) order by w.place)
    from unnest(%s::timestamptz[], %s::float8[]) with ordinality as w(at, delay, place)), %s::bytea[], %s::bigint[])"""

_HEARTBEAT = "select menzil.message_heartbeat(%s::bigint, %s::bigint, %s::bigint)"
_HEARTBEAT_MANY = """
select id, outcome from menzil.message_heartbeat(%s::bigint[], %s::bigint[], %s::bigint, %s::bigint[])"""

_FAIL = "select menzil.message_fail(%s::bigint, %s::bigint, %s::text, %s::interval)"
_FAIL_MANY = """
select id, outcome
from menzil.message_fail(%s::bigint[], %s::bigint[], %s::text[], %s::interval[], %s::jsonb[], %s::boolean[],
  %s::boolean[], %s::bigint[])"""


def dequeue(
    limit: int = 1,
    lease: Seconds = 30,
    channels: str | Iterable[str] | None = None,
    worker: str | None = None,
    *,
    endpoints: bool = False,
    leave_out: Sequence[str] = (),
    apart: bool = False,
    loads: Loads = json_loads,
    database: str | None = None,
) -> Op[list[Message]]:
    """menzil.message_dequeue, from `channels`, all channels or all endpoints but some; `apart`: a lease per message."""
    params = (*_wish(limit, lease, channels, worker, endpoints), "t" if apart else "f", _names(leave_out))
    return Op(_DEQUEUE, params, partial(read_messages, loads, database=database))


def following(
    done: Iterable[Leased],
    limit: int = 1,
    lease: Seconds = 30,
    channels: str | Iterable[str] | None = None,
    worker: str | None = None,
    *,
    endpoints: bool = False,
    leave_out: Sequence[str] = (),
    loads: Loads = json_loads,
    database: str | None = None,
) -> Op[Following]:
    """menzil.message_next: complete these and lease the next in one call."""
    done = list(done)
    params = (*_tokens(done), *_wish(limit, lease, channels, worker, endpoints), _batches(done), _names(leave_out))
    return Op(_NEXT, params, partial(_read_following, loads, database))


def _wish(
    limit: int, lease: Seconds, channels: str | Iterable[str] | None, worker: str | None, endpoints: bool
) -> tuple[str | None, ...]:
    if isinstance(channels, str):
        channels = [channels]
    return (
        values.milliseconds("lease", lease),
        values.integer("limit", limit),
        None if channels is None else values.array([values.text("channel", name) for name in channels]),
        values.optional_text("worker", worker),
        "t" if endpoints else "f",
    )


def _names(names: Sequence[str]) -> str | None:
    return values.array(names) if names else None


def _read_following(loads: Loads, database: str | None, rows: Rows) -> Following:
    late = [LeaseOutcome(row[0], Settlement(row[-1])) for row in rows if row[-1] is not None]
    return read_messages(loads, [row for row in rows if row[-1] is None] if late else rows, database), late


def read_messages(loads: Loads, rows: Rows, database: str | None = None) -> list[Message]:
    """Wrap the rows of message_dequeue or message_peek."""
    make = Message.from_row
    return [make(row, loads, database) for row in rows]


def complete(lease: Leased, response: Response | None = None) -> Op[None]:
    """menzil.message_complete. With a response it is the call on arrays: a lost lease is an answer, not an error."""
    if response is None:
        return Op(_COMPLETE, _token(lease), op.nothing)
    many = complete_many([lease], [response])
    return Op(many.text, many.params, lambda rows: _demand(many.read(rows)[0], lease))


def _demand(answer: LeaseOutcome, lease: Leased) -> None:
    if answer.outcome is Settlement.STALE:
        raise StaleLeaseError(f"The lease of message {lease.id}, attempt {lease.attempt}, is stale.")
    if not answer.ok:
        raise NotInFlightError(f"Message {lease.id} is not in flight.")


def complete_many(leases: Iterable[Leased], responses: Sequence[Response | None] = ()) -> Op[list[LeaseOutcome]]:
    """menzil.message_complete, on arrays; `responses` is empty, or has one for each."""
    leases = list(leases)
    given = values.sparse_array([None if one is None else _json(one) for one in responses])
    return Op(_COMPLETE_MANY, (*_tokens(leases), given, _batches(leases)), _outcomes(leases))


def defer(
    lease: Leased, *, delay: Seconds | None = None, until: datetime | None = None, state: bytes | None = None
) -> Op[None]:
    """menzil.message_defer."""
    values.either("delay", "until", delay, until)
    when = (values.time("until", until), values.seconds("delay", delay))
    return Op(_DEFER, (*_token(lease), *when, values.content("state", state)), op.nothing)


def defer_many(items: Iterable[tuple[Leased, Defer]]) -> Op[list[LeaseOutcome]]:
    """menzil.message_defer, on arrays."""
    items = list(items)
    for _, how in items:
        values.either("seconds", "until", how.seconds, how.until)
    untils = [values.time("until", how.until) for _, how in items]
    delays = [values.seconds("seconds", how.seconds) for _, how in items]
    states = [values.content("state", how.state) for _, how in items]
    leases = [lease for lease, _ in items]
    params = (
        values.array(untils),
        values.numbers(delays),
        values.sparse_array([None if state is None else "\\x" + state.hex() for state in states]),
        _batches(leases),
    )
    return Op(_DEFER_MANY, (*_tokens(leases), *params), _outcomes(leases))


def heartbeat(lease: Leased, seconds: Seconds = 30) -> Op[None]:
    """menzil.message_heartbeat."""
    return Op(_HEARTBEAT, (*_token(lease), values.milliseconds("lease", seconds)), op.nothing)


def heartbeat_many(leases: Iterable[Leased], seconds: Seconds = 30) -> Op[list[LeaseOutcome]]:
    """menzil.message_heartbeat, on arrays."""
    leases = list(leases)
    params = (*_tokens(leases), values.milliseconds("lease", seconds), _batches(leases))
    return Op(_HEARTBEAT_MANY, params, _outcomes(leases))


def fail(
    lease: Leased, error: str, *, retry_after: Seconds | None = None, permanent: bool = False, disable: bool = False
) -> Op[Settlement]:
    """menzil.message_fail."""
    reason = _reason("error", error, permanent=permanent, disable=disable)
    params = (*_token(lease), reason, values.interval("retry_after", retry_after))
    return Op(_FAIL, params, lambda rows: Settlement(rows[0][0]))


def fail_many(items: Iterable[tuple[Leased, Fail]]) -> Op[list[LeaseOutcome]]:
    """menzil.message_fail, on arrays."""
    items = list(items)
    leases = [lease for lease, _ in items]
    reasons = [_reason("reason", how.reason, permanent=how.retry is False, disable=how.disable) for _, how in items]
    waits = [None if isinstance(how.retry, bool) else values.interval("retry", how.retry) for _, how in items]
    responses = [None if how.response is None else _json(how.response) for _, how in items]
    params = (
        *_tokens(leases),
        values.array(reasons),
        values.sparse_array(waits),
        values.sparse_array(responses),
        values.booleans([how.retry is False or how.disable for _, how in items]),
        values.booleans([how.rest for _, how in items]),
        _batches(leases),
    )
    return Op(_FAIL_MANY, params, _outcomes(leases))


def _json(response: Response) -> str:
    # What the other side said may hold anything; jsonb holds no NUL and no half of a surrogate pair.
    text = json_dumps(response)
    assert isinstance(text, str)
    return _NUL.sub("\\1\ufffd", text).encode("utf-8", "replace").decode()


def _reason(what: str, error: object, *, permanent: bool, disable: bool) -> str:
    if error is None:
        raise MissingValueError(f"The {what} is missing.", hint="say what went wrong: people read it")
    # An error text comes from anywhere, and a message must be able to fail with any of them: what PostgreSQL cannot
    # store is spelled out, and a text that begins like a class does not become one.
    text = str(error).replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
    if disable:
        return f"[PERMANENT] [DISABLE] {text}"
    if permanent:
        return f"[PERMANENT] {text}"
    return f"[RETRYABLE] {text}"


def _token(lease: Leased) -> tuple[str, str]:
    try:
        return values.integer("id", lease.id), values.integer("attempt", lease.attempt)
    except AttributeError:
        raise _no_message([lease]) from None


def _tokens(leases: Sequence[Leased]) -> tuple[str, str]:
    try:
        ids, attempts = [lease.id for lease in leases], [lease.attempt for lease in leases]
    except AttributeError:
        raise _no_message(leases) from None
    return values.integers(ids), values.integers(attempts)


def _no_message(leases: Sequence[object]) -> UsageError:
    wrong = next(one for one in leases if not (hasattr(one, "id") and hasattr(one, "attempt")))
    return UsageError(f"{wrong!r:.100} is not a message.", hint="give a Message, or a Lease of an id and an attempt")


def _batches(leases: Sequence[Leased]) -> str | None:
    # Only a Message knows its batch; who keeps id and attempt alone has a lease all the same.
    try:
        batches = [lease.batch for lease in leases]  # type: ignore[attr-defined]
    except AttributeError:
        batches = [getattr(lease, "batch", None) for lease in leases]
    if not any(batches):
        return None
    if None not in batches:
        return values.integers(batches)
    return values.numbers([None if batch is None else str(batch) for batch in batches])


def _outcomes(leases: Sequence[Leased]) -> Callable[[Rows], list[LeaseOutcome]]:
    """Answer in the order of the question, one for each."""

    def read(rows: Rows) -> list[LeaseOutcome]:
        said: dict[int, str] = dict(rows)
        return [LeaseOutcome(lease.id, Settlement(said[lease.id])) for lease in leases]

    return read
