"""Event types, subscriptions, and events on their way to their subscribers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Unpack

from menzil.model.errors import MissingValueError, UsageError
from menzil.model.options import SendOptions
from menzil.model.wire import Dumps, json_dumps
from menzil.ops import op, values
from menzil.ops.op import Op
from menzil.ops.records import Record, records
from menzil.ops.sending import json_only

#: What menzil.publish_batch takes at most; more events are several statements of one transaction.
CHUNK = 10_000

_WORDS = frozenset(("event_type", "payload")) | SendOptions.__annotations__.keys()

# Delays are added by the database: its clock is the one that decides when they are over.
_PUBLISH = """
select menzil.publish(
  p_event_type => %s::text, p_payload => %s::jsonb, p_priority => %s::integer,
  p_scheduled_at => coalesce(%s::timestamptz, clock_timestamp() + make_interval(secs => %s::float8)),
  p_idempotency_key => %s::text, p_correlation_id => %s::uuid,
  p_expires_at => coalesce(%s::timestamptz, clock_timestamp() + make_interval(secs => %s::float8)),
  p_ordering_key => %s::text, p_headers => %s::jsonb, p_metadata => %s::jsonb)"""

_PUBLISH_BATCH = """
select menzil.publish_batch(array(
  select e.event
    || case when e.delay is null then '{}' else
         jsonb_build_object('scheduled_at', clock_timestamp() + make_interval(secs => e.delay)) end
    || case when e.expires_in is null then '{}' else
         jsonb_build_object('expires_at', clock_timestamp() + make_interval(secs => e.expires_in)) end
  from unnest(%s::jsonb[], %s::float8[], %s::float8[]) with ordinality as e(event, delay, expires_in, place)
  order by e.place))"""

_CREATE = "select menzil.create_event_type(%s::text, %s::text, %s::jsonb)"
_EVENT_TYPES = "select name, description, schema, created_at from menzil.event_types order by name"
_SUBSCRIPTIONS = """
select id, event_type, endpoint_name, filter, created_at from menzil.subscriptions
where (event_type = %s::text) is not false order by id"""


def create_event_type(
    name: str, description: str | None = None, schema: Mapping[str, Any] | bool | None = None
) -> Op[None]:
    """menzil.create_event_type."""
    params = (
        values.text("event type", name),
        values.optional_text("description", description),
        values.optional_json("schema", schema, json_dumps),
    )
    return Op(_CREATE, params, op.nothing)


def drop_event_type(name: str) -> Op[None]:
    """menzil.drop_event_type."""
    return Op("select menzil.drop_event_type(%s::text)", (values.text("event type", name),), op.nothing)


def validate_event(event_type: str, payload: Any, *, dumps: Dumps = json_dumps) -> Op[bool]:
    """menzil.validate_event."""
    params = (values.text("event type", event_type), values.payload("payload", json_only(payload), dumps))
    return Op("select menzil.validate_event(%s::text, %s::jsonb)", params, op.boolean)


def subscribe(event_type: str, endpoint: str, filter: Mapping[str, Any] | None = None) -> Op[int]:
    """menzil.subscribe."""
    params = (
        values.text("event type", event_type),
        values.text("endpoint", endpoint),
        values.optional_json("filter", filter, json_dumps),
    )
    return Op("select menzil.subscribe(%s::text, %s::text, %s::jsonb)", params, op.integer)


def unsubscribe(subscription: int | str, endpoint: str | None = None) -> Op[int]:
    """menzil.unsubscribe, by id, or by the names of an event type and an endpoint."""
    if endpoint is None and not isinstance(subscription, str):
        params: tuple[str, ...] = (values.integer("subscription", subscription),)
        return Op("select menzil.unsubscribe(%s::bigint)", params, op.integer)
    params = (values.text("event type", subscription), values.text("endpoint", endpoint))
    return Op("select menzil.unsubscribe(%s::text, %s::text)", params, op.integer)


def publish(event_type: str, payload: Any, *, dumps: Dumps = json_dumps, **options: Unpack[SendOptions]) -> Op[int]:
    """menzil.publish."""
    event = _checked({"event_type": event_type, "payload": payload, **options}, dumps)
    words = (
        "event_type", "payload", "priority", "scheduled_at", "delay", "idempotency_key", "correlation_id", "expires_at",
        "expires_in", "ordering_key", "headers", "metadata",
    )  # fmt: skip
    return Op(_PUBLISH, tuple(event[word] for word in words), op.integer)


def publish_batch(events: Iterable[Mapping[str, Any]], *, dumps: Dumps = json_dumps) -> list[Op[int]]:
    """menzil.publish_batch, as one Op per chunk. All events are checked before the first one is published."""
    checked = [_checked(event, dumps) for event in events]
    return [_publish_chunk(chunk) for chunk in _chunks(checked)]


def _checked(event: Mapping[str, Any], dumps: Dumps) -> dict[str, str | None]:
    """Check one event and write its values as text, JSON as it is to stand in a statement."""
    if not isinstance(event, Mapping):
        raise UsageError(f"An event is a dict, not {type(event).__name__}.")
    if unknown := event.keys() - _WORDS:
        word = sorted(map(str, unknown))[0]
        raise UsageError(f"An event has no {word!r}.", hint=f"it has {', '.join(sorted(_WORDS))}")
    for word in ("event_type", "payload"):
        if word not in event:
            raise MissingValueError(f"The {word} is missing.")
    values.either("delay", "scheduled_at", event.get("delay"), event.get("scheduled_at"))
    values.either("expires_in", "expires_at", event.get("expires_in"), event.get("expires_at"))
    return {
        "event_type": values.text("event type", event["event_type"]),
        "payload": values.payload("payload", json_only(event["payload"]), dumps),
        "priority": values.integer("priority", event.get("priority", 0)),
        "scheduled_at": values.time("scheduled_at", event.get("scheduled_at")),
        "delay": values.seconds("delay", event.get("delay")),
        "idempotency_key": values.optional_text("idempotency_key", event.get("idempotency_key")),
        "correlation_id": values.uuid("correlation_id", event.get("correlation_id")),
        "expires_at": values.time("expires_at", event.get("expires_at")),
        "expires_in": values.seconds("expires_in", event.get("expires_in")),
        "ordering_key": values.optional_text("ordering_key", event.get("ordering_key")),
        "headers": values.optional_json("headers", event.get("headers"), dumps),
        "metadata": values.optional_json("metadata", event.get("metadata"), dumps),
    }


def _publish_chunk(events: Sequence[dict[str, str | None]]) -> Op[int]:
    params = (
        values.array([_object(event) for event in events]),
        values.numbers([event["delay"] for event in events]),
        values.numbers([event["expires_in"] for event in events]),
    )
    return Op(_PUBLISH_BATCH, params, op.integer)


def _object(event: dict[str, str | None]) -> str:
    """One event as the JSON object that menzil.publish_batch takes; its payload is written already."""
    written = ("payload", "priority", "headers", "metadata")
    members = [
        f'"{word}":{value if word in written else json.dumps(value, ensure_ascii=False)}'
        for word, value in event.items()
        if value is not None and word not in ("delay", "expires_in")
    ]
    return "{" + ",".join(members) + "}"


def _chunks(events: Iterable[dict[str, str | None]]) -> Iterator[list[dict[str, str | None]]]:
    left = iter(events)
    while chunk := list(islice(left, CHUNK)):
        yield chunk


def event_types() -> Op[list[Record]]:
    """The view menzil.event_types."""
    return Op(_EVENT_TYPES, (), records("name description schema:json created_at:time"))


def subscriptions(event_type: str | None = None) -> Op[list[Record]]:
    """The view menzil.subscriptions, or the part about one event type."""
    params = (values.optional_text("event type", event_type),)
    return Op(_SUBSCRIPTIONS, params, records("id event_type endpoint_name filter:json created_at:time"))
