"""Looks at the views: lists by keyset, never without a limit, and one thing by its name or id. Nothing is changed."""

from __future__ import annotations

import re
from datetime import datetime

from menzil.ops import op, values
from menzil.ops.op import Op
from menzil.ops.records import Record, record, records

#: How many messages a filtered list looks through before it stops; the next page goes on from there.
SCAN = 100_000

#: Where counts stop.
CAP = 100_000


def now() -> Op[datetime]:
    """The clock of the database."""
    return Op("select clock_timestamp()", (), op.time)


_ENDPOINT = (
    "id name protocol enabled paused circuit_state circuit_failure_count next_probe_at:time config:json "
    "retry_policy:json created_at:time updated_at:time"
)
_ENDPOINTS = """
select e.id, e.name, e.protocol, e.enabled, e.paused, e.circuit_state, e.circuit_failure_count, e.next_probe_at,
       e.config, e.retry_policy, e.created_at, e.updated_at
  from menzil.endpoints e where e.name > %s::text order by e.name limit %s::integer"""
_ENDPOINT_NAMED = """
select e.id, e.name, e.protocol, e.enabled, e.paused, e.circuit_state, e.circuit_failure_count, e.next_probe_at,
       e.config, e.retry_policy, e.created_at, e.updated_at
  from menzil.endpoints e where e.name = %s::text"""


def endpoints(limit: int, after: str = "") -> Op[list[Record]]:
    """menzil.endpoints, by name."""
    params = (values.text("name", after), values.integer("limit", limit))
    return Op(_ENDPOINTS, params, records(_ENDPOINT))


def endpoint(name: str) -> Op[Record | None]:
    """menzil.endpoints, one of them."""
    return Op(_ENDPOINT_NAMED, (values.text("endpoint", name),), record(_ENDPOINT))


_CHANNEL = (
    "id name is_endpoint enabled paused released max_concurrency max_size release_interval_ms release_count on_dead "
    "in_flight created_at:time updated_at:time"
)
_CHANNELS = """
select c.id, c.name, c.is_endpoint, c.enabled, c.paused, c.released, c.max_concurrency, c.max_size,
       c.release_interval_ms, c.release_count, c.on_dead, c.in_flight, c.created_at, c.updated_at
  from menzil.channels c where c.name > %s::text order by c.name limit %s::integer"""
_CHANNEL_NAMED = """
select c.id, c.name, c.is_endpoint, c.enabled, c.paused, c.released, c.max_concurrency, c.max_size,
       c.release_interval_ms, c.release_count, c.on_dead, c.in_flight, c.created_at, c.updated_at
  from menzil.channels c where c.name = %s::text"""


def channels(limit: int, after: str = "") -> Op[list[Record]]:
    """menzil.channels, by name."""
    params = (values.text("name", after), values.integer("limit", limit))
    return Op(_CHANNELS, params, records(_CHANNEL))


def channel(name: str) -> Op[Record | None]:
    """menzil.channels, one of them."""
    return Op(_CHANNEL_NAMED, (values.text("channel", name),), record(_CHANNEL))


_LOAD = """
select count(*) filter (where q.status = 'pending'), count(*) filter (where q.status = 'processing'),
       min(q.created_at) filter (where q.status = 'pending'), max(q.created_at) filter (where q.status = 'pending')
  from (select q.status, q.created_at from menzil.queue q where q.channel = %s::text limit %s::integer) q"""


def load(channel: str, cap: int = CAP) -> Op[Record]:
    """What a channel holds, counted up to a cap."""
    read = records("pending processing oldest:time newest:time")
    params = (values.text("channel", channel), values.integer("cap", cap))
    return Op(_LOAD, params, lambda rows: read(rows)[0])


_SCHEDULES = """
select s.id, s.name, s.cron, s.time_zone, s.endpoint_name, s.payload, s.priority, s.ordering_key,
       extract(epoch from s.expires_after)::float8, s.headers, s.metadata, s.paused, s.next_at, s.last_slot_at,
       s.last_message_id, s.last_error, s.created_at
  from menzil.schedules s where s.name > %s::text order by s.name limit %s::integer"""
_SCHEDULES_PLAINLY = re.sub(r"s\.(payload|headers|metadata)", "null::jsonb", _SCHEDULES)


def schedules(limit: int, after: str = "", *, bodies: bool = True) -> Op[list[Record]]:
    """menzil.schedules, by name; without `bodies`, NULL in place of the columns that menzil_monitor may not read."""
    params = (values.text("name", after), values.integer("limit", limit))
    columns = (
        "id name cron time_zone endpoint_name payload:json priority ordering_key expires_after headers:json "
        "metadata:json paused next_at:time last_slot_at:time last_message_id last_error created_at:time"
    )
    return Op(_SCHEDULES if bodies else _SCHEDULES_PLAINLY, params, records(columns))


_SETTINGS = """
select s.name, s.value, s.default_value, s.minimum, s.maximum, s.unit, s.description
  from menzil.settings s order by s.name"""


def settings() -> Op[list[Record]]:
    """menzil.settings, all of them: they are few."""
    return Op(_SETTINGS, (), records("name value default_value minimum maximum unit description"))


_BLOCKED = """
select d.id, d.original_message_id, d.endpoint_name, d.ordering_key, d.failed_at, d.last_error
  from menzil.dlq d
 where d.blocks_key and d.status = 'failed' and (%s::text is null or d.endpoint_name = %s::text)
 order by d.id limit %s::integer"""


def blocked_keys(channel: str | None = None, limit: int = 100) -> Op[list[Record]]:
    """menzil.dlq: the dead letters that hold their ordering key until an operator decides."""
    name = values.optional_text("channel", channel)
    columns = "id original_message_id endpoint_name ordering_key failed_at:time last_error"
    return Op(_BLOCKED, (name, name, values.integer("limit", limit)), records(columns))


_EVENT_TYPES = """
select t.name, t.description, t.schema, t.created_at
  from menzil.event_types t where t.name > %s::text order by t.name limit %s::integer"""


def event_types(limit: int, after: str = "") -> Op[list[Record]]:
    """menzil.event_types, by name."""
    params = (values.text("name", after), values.integer("limit", limit))
    return Op(_EVENT_TYPES, params, records("name description schema:json created_at:time"))


_SUBSCRIPTIONS = """
select s.id, s.event_type, s.endpoint_name, s.filter, s.created_at
  from menzil.subscriptions s
 where s.id > %s::bigint and (%s::text is null or s.event_type = %s::text)
   and (%s::text is null or s.endpoint_name = %s::text)
 order by s.id limit %s::integer"""


def subscriptions(
    limit: int, after: int = 0, *, event_type: str | None = None, endpoint: str | None = None
) -> Op[list[Record]]:
    """menzil.subscriptions, by id."""
    kind, name = values.optional_text("event type", event_type), values.optional_text("endpoint", endpoint)
    params = (values.integer("id", after), kind, kind, name, name, values.integer("limit", limit))
    return Op(_SUBSCRIPTIONS, params, records("id event_type endpoint_name filter:json created_at:time"))
