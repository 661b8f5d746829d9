"""SEND: from a name and a body to an id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any, Unpack

from menzil.model.errors import InvalidValueError, MissingValueError, UsageError
from menzil.model.options import Send, SendOptions
from menzil.model.wire import Dumps, json_dumps
from menzil.ops import op, values
from menzil.ops.op import Op

#: A longer send_many is several statements of one transaction: a statement is built in memory on both sides.
CHUNK = 10_000

Written = tuple[str | None, ...]

_BYTES = (bytes, bytearray, memoryview)
_NAMES = frozenset(field.name for field in fields(Send))

_SEND = "select menzil.send(%s::text, %s::jsonb)"

# Delays are added by the database: its clock is the one that decides when they are over.
_SEND_WITH_OPTIONS = """
select menzil.send_with_options(
  p_endpoint_name => %s::text, p_payload => %s::jsonb, p_priority => %s::integer,
  p_scheduled_at => coalesce(%s::timestamptz, clock_timestamp() + make_interval(secs => %s::float8)),
  p_idempotency_key => %s::text, p_correlation_id => %s::uuid,
  p_expires_at => coalesce(%s::timestamptz, clock_timestamp() + make_interval(secs => %s::float8)),
  p_ordering_key => %s::text, p_headers => %s::jsonb, p_metadata => %s::jsonb)"""

_CREATE = """
select menzil.message_create(%s::text, %b::bytea,
  coalesce(%s::timestamptz, clock_timestamp() + make_interval(secs => %s::float8)))"""

_SEND_BATCH = "select menzil.send_batch(%s::text, %s::jsonb[])"
_SEND_BATCH_WITH_PRIORITY = "select menzil.send_batch_with_priority(%s::text, %s::jsonb[], %s::integer)"

_SEND_MANY = """
select menzil.send_many(
  p_endpoint_names => %s::text[], p_payloads => %s::jsonb[], p_priorities => %s::integer[],
  p_scheduled_ats => (
    select array_agg(coalesce(w.at, clock_timestamp() + make_interval(secs => w.delay)) order by w.place)
    from unnest(%s::timestamptz[], %s::float8[]) with ordinality as w(at, delay, place)),
  p_idempotency_keys => %s::text[], p_correlation_ids => %s::uuid[],
  p_expires_ats => (
    select array_agg(coalesce(w.at, clock_timestamp() + make_interval(secs => w.delay)) order by w.place)
    from unnest(%s::timestamptz[], %s::float8[]) with ordinality as w(at, delay, place)),
  p_ordering_keys => %s::text[], p_headers => %s::jsonb[], p_metadatas => %s::jsonb[])"""


def send(channel: str, payload: Any, *, dumps: Dumps = json_dumps, **options: Unpack[SendOptions]) -> Op[int]:
    """menzil.send, menzil.send_with_options, or menzil.message_create when the payload is bytes."""
    if isinstance(payload, _BYTES):
        return _create(channel, payload, **options)
    if not options:
        name = values.text("channel", channel)
        return Op(_SEND, (name, values.payload("payload", payload, dumps)), op.integer)
    return Op(_SEND_WITH_OPTIONS, _written(Send(channel, payload, **options), dumps), op.integer)


def _create(channel: str, body: object, **options: Any) -> Op[int]:
    delay, scheduled_at = options.pop("delay", None), options.pop("scheduled_at", None)
    if refused := [name for name, value in options.items() if value not in (None, 0)]:
        hint = "a body of bytes takes delay or scheduled_at; send JSON for more"
        raise UsageError(f"A body of bytes takes no {refused[0]}.", hint=hint)
    values.either("delay", "scheduled_at", delay, scheduled_at)
    name, content = values.text("channel", channel), values.content("payload", body)
    when = (values.time("scheduled_at", scheduled_at), values.seconds("delay", delay))
    return Op(_CREATE, (name, content, *when), op.integer)


def _written(message: Send, dumps: Dumps) -> Written:
    """Check one message and write its values in the order of send_with_options."""
    values.either("delay", "scheduled_at", message.delay, message.scheduled_at)
    values.either("expires_in", "expires_at", message.expires_in, message.expires_at)
    return (
        values.text("channel", message.channel),
        values.payload("payload", message.payload, dumps),
        values.integer("priority", message.priority),
        values.time("scheduled_at", message.scheduled_at),
        values.seconds("delay", message.delay),
        values.optional_text("idempotency_key", message.idempotency_key),
        values.uuid("correlation_id", message.correlation_id),
        values.time("expires_at", message.expires_at),
        values.seconds("expires_in", message.expires_in),
        values.optional_text("ordering_key", message.ordering_key),
        values.optional_json("headers", message.headers, dumps),
        values.optional_json("metadata", message.metadata, dumps),
    )


def send_batch(channel: str, payloads: Iterable[Any], priority: int = 0, *, dumps: Dumps = json_dumps) -> Op[list[int]]:
    """menzil.send_batch, or menzil.send_batch_with_priority when there is one."""
    name = values.text("channel", channel)
    if isinstance(payloads, str | bytes | bytearray | memoryview | Mapping):  # its letters or keys would be sent
        raise InvalidValueError(
            f"The payloads must be a list, not {type(payloads).__name__}.", hint="use send() for one"
        )
    written = values.array([values.payload("payload", json_only(payload), dumps) for payload in payloads])
    if priority == 0:
        return Op(_SEND_BATCH, (name, written), op.integers)
    return Op(_SEND_BATCH_WITH_PRIORITY, (name, written, values.integer("priority", priority)), op.integers)


def send_many(messages: Iterable[Send | Mapping[str, Any]], *, dumps: Dumps = json_dumps) -> list[Op[list[int]]]:
    """menzil.send_many, as one Op per chunk. All messages are checked before the first one is sent."""
    written = [_written(_as_send(message), dumps) for message in messages]
    return [_send_chunk(chunk) for chunk in _chunks(written)]


def _send_chunk(rows: Sequence[Written]) -> Op[list[int]]:
    channel, payload, priority, at, delay, key, correlation, expires_at, expires_in, ordering, headers, metadata = zip(
        *rows, strict=True
    )
    params = (
        values.array(channel),
        values.array(payload),
        values.numbers(priority),
        values.array(at) if any(at) or any(delay) else None,
        values.numbers(delay) if any(at) or any(delay) else None,
        values.sparse_array(key),
        values.sparse_array(correlation),
        values.array(expires_at) if any(expires_at) or any(expires_in) else None,
        values.numbers(expires_in) if any(expires_at) or any(expires_in) else None,
        values.sparse_array(ordering),
        values.sparse_array(headers),
        values.sparse_array(metadata),
    )
    return Op(_SEND_MANY, params, op.integers)


def _chunks(rows: Sequence[Written]) -> Iterator[list[Written]]:
    left = iter(rows)
    while chunk := list(islice(left, CHUNK)):
        yield chunk


def _as_send(message: Send | Mapping[str, Any]) -> Send:
    if isinstance(message, Send):
        json_only(message.payload)
        return message
    if not isinstance(message, Mapping):
        raise UsageError(f"A message of send_many is a menzil.Send or a dict, not {type(message).__name__}.")
    named = dict(message)
    if "endpoint" in named:  # the word of the SQL function; a channel by another name
        endpoint = named.pop("endpoint")
        if named.get("channel", endpoint) != endpoint:
            raise UsageError("A message names a channel and another endpoint.", hint="give one of the two")
        named["channel"] = endpoint
    if unknown := named.keys() - _NAMES:
        word = sorted(map(str, unknown))[0]
        raise UsageError(f"A message has no {word!r}.", hint=f"it has {', '.join(sorted(_NAMES))}")
    for word in ("channel", "payload"):
        if word not in named:
            raise MissingValueError(f"The {word} is missing.")
    json_only(named["payload"])
    return Send(**named)


def json_only(payload: Any) -> Any:
    """Refuse bytes where only JSON travels."""
    if isinstance(payload, _BYTES):
        raise UsageError("A body of bytes cannot be sent in a batch.", hint="call send for each of them")
    return payload


def enable_fast_mode() -> Op[None]:
    """menzil.enable_fast_mode."""
    return Op("select menzil.enable_fast_mode()", (), op.nothing)
