"""What the jobs of the pipeline ask before they move anything. Nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence

from menzil.ops import op, values
from menzil.ops.op import Op
from menzil.ops.records import Record, records

_CHANNELS_NAMED = """
select c.name, c.enabled, c.released from menzil.channels c where c.name = any (%s::text[]) order by c.name"""

_EVENT_TYPES_NAMED = """
select t.name, t.schema is not null from menzil.event_types t where t.name = any (%s::text[]) order by t.name"""

# A disabled endpoint gets no copy of an event, and does not fail the publish.
_OPEN_SUBSCRIPTIONS = """
select s.event_type, s.endpoint_name, s.filter::text
  from menzil.subscriptions s join menzil.channels c on c.name = s.endpoint_name
 where c.enabled and s.event_type = any (%s::text[]) order by s.id"""

_MAX_PAYLOAD_SIZE = "select s.value::bigint from menzil.settings s where s.name = 'max_payload_size'"

_VALIDATE_EVENTS = """
select count(menzil.validate_event(%s::text, u.payload)) from unnest(%s::jsonb[]) u(payload)"""


def channels_named(names: Sequence[str]) -> Op[list[Record]]:
    """menzil.channels: those of these names that are there, and whether they take messages."""
    params = (values.array([values.text("channel", name) for name in names]),)
    return Op(_CHANNELS_NAMED, params, records("name enabled released"))


def event_types_named(names: Sequence[str]) -> Op[list[Record]]:
    """menzil.event_types: those of these names that are there, and whether they have a schema."""
    params = (values.array([values.text("event type", name) for name in names]),)
    return Op(_EVENT_TYPES_NAMED, params, records("name has_schema"))


def open_subscriptions(event_types: Sequence[str]) -> Op[list[Record]]:
    """menzil.subscriptions of these event types whose endpoints take messages; filters as text."""
    params = (values.array([values.text("event type", name) for name in event_types]),)
    return Op(_OPEN_SUBSCRIPTIONS, params, records("event_type endpoint_name filter"))


def max_payload_size() -> Op[int]:
    """The setting max_payload_size, in bytes."""
    return Op(_MAX_PAYLOAD_SIZE, (), op.integer)


def validate_events(event_type: str, payloads: Sequence[str]) -> Op[int]:
    """menzil.validate_event for many payloads of one type: refuses when one of them breaks the schema."""
    params = (values.text("event type", event_type), values.array(list(payloads)))
    return Op(_VALIDATE_EVENTS, params, op.integer)
