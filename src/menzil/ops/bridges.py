"""Bridges: sources outside the database whose records become messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from menzil.model.wire import json_dumps, json_loads, read_json, read_time
from menzil.ops import op, values
from menzil.ops.op import Op, Rows
from menzil.ops.records import Record, record, records


@dataclass(frozen=True, slots=True)
class Spec:
    """A bridge as a process opened it, secrets included. Its repr shows none of them."""

    id: int
    name: str
    protocol: str
    config: Mapping[str, Any] = field(repr=False)
    channel: str | None
    event_type: str | None
    paused: bool
    updated_at: datetime
    positions: Mapping[str, str | None]
    family: str  # the same for all processes of this bridge in this database, another one in a copy


@dataclass(frozen=True, slots=True)
class Row:
    """One record, ready for bridge_take."""

    text: str | None = field(repr=False)  # a body that must be JSON
    content: bytes | None = field(repr=False)  # a body of bytes, or the raw body of a record with a fault
    fault: str | None = None  # why it cannot be a message
    ordering_key: str | None = None
    idempotency_key: str | None = None
    correlation_id: str | None = None
    headers: str | None = field(default=None, repr=False)
    metadata: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a batch."""

    taken: int
    refused: int


def bridge_create(
    name: str, protocol: str, config: Mapping[str, Any], channel: str | None = None, event_type: str | None = None
) -> Op[int]:
    """menzil.bridge_create."""
    params = (
        values.text("bridge", name),
        values.text("protocol", protocol),
        _config(config),
        *_goal(channel, event_type),
    )
    return Op("select menzil.bridge_create(%s::text, %s::text, %s::jsonb, %s::text, %s::text)", params, op.integer)


def bridge_alter(
    name: str, config: Mapping[str, Any] | None = None, channel: str | None = None, event_type: str | None = None
) -> Op[None]:
    """menzil.bridge_alter."""
    written = None if config is None else _config(config)
    params = (values.text("bridge", name), written, *_goal(channel, event_type))
    return Op("select menzil.bridge_alter(%s::text, %s::jsonb, %s::text, %s::text)", params, op.nothing)


def bridge_pause(name: str) -> Op[None]:
    """menzil.bridge_pause."""
    return Op("select menzil.bridge_pause(%s::text)", (values.text("bridge", name),), op.nothing)


def bridge_resume(name: str) -> Op[None]:
    """menzil.bridge_resume."""
    return Op("select menzil.bridge_resume(%s::text)", (values.text("bridge", name),), op.nothing)


def bridge_drop(name: str) -> Op[None]:
    """menzil.bridge_drop."""
    return Op("select menzil.bridge_drop(%s::text)", (values.text("bridge", name),), op.nothing)


def bridge_seek(name: str, partition: str, position: str | None) -> Op[None]:
    """menzil.bridge_seek."""
    params = (
        values.text("bridge", name),
        values.text("partition", partition),
        values.optional_text("position", position),
    )
    return Op("select menzil.bridge_seek(%s::text, %s::text, %s::text)", params, op.nothing)


def bridge_open(name: str, instance: str, host: str, pid: int, version: str) -> Op[Spec]:
    """menzil.bridge_open."""
    statement = """select id, protocol, config, channel, event_type, paused, updated_at, positions, family
      from menzil.bridge_open(%s::text, %s::text, %s::text, %s::integer, %s::text)"""

    def read(rows: Rows) -> Spec:
        id, protocol, config, channel, event_type, paused, updated_at, positions, family = rows[0]
        known, stored = read_json(config, json_loads), read_json(positions, json_loads)
        return Spec(id, name, protocol, known, channel, event_type, paused, read_time(updated_at), stored, family)

    params = (values.text("bridge", name), instance, host, str(pid), version)
    return Op(statement, params, read)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a heartbeat hears."""

    paused: bool
    updated_at: datetime


def bridge_heartbeat(name: str, instance: str, error: str | None, lags: Mapping[str, int] | None) -> Op[Heard | None]:
    """menzil.bridge_heartbeat; None: the bridge is gone."""

    def read(rows: Rows) -> Heard | None:
        return Heard(rows[0][0], read_time(rows[0][1])) if rows else None

    params = (name, instance, error, None if lags is None else values.payload("lags", dict(lags), json_dumps))
    statement = "select paused, updated_at from menzil.bridge_heartbeat(%s::text, %s::text, %s::text, %s::jsonb)"
    return Op(statement, params, read)


def bridge_close(name: str, instance: str) -> Op[None]:
    """menzil.bridge_close."""
    return Op("select menzil.bridge_close(%s::text, %s::text)", (name, instance), op.nothing)


def bridge_begin(name: str, partition: str, start: str | None) -> Op[str | None]:
    """menzil.bridge_begin."""
    return Op(
        "select menzil.bridge_begin(%s::text, %s::text, %s::text)", (name, partition, start), lambda rows: rows[0][0]
    )


_TAKE = """
select taken, refused from menzil.bridge_take(%s::text, %s::text, %s::text, %s::text, %s::text[], %s::bytea[],
  %s::text[], %s::text[], %s::text[], %s::uuid[], %s::text[], %s::text[], %s::bigint, %s::text)"""


def bridge_take(
    name: str, partition: str, begin: str | None, end: str | None, rows: Sequence[Row], *, lost: int = 0, worker: str
) -> Op[Taken]:
    """menzil.bridge_take."""
    contents = [None if row.content is None else "\\x" + row.content.hex() for row in rows]
    params = (
        name,
        partition,
        begin,
        end,
        values.array([row.text for row in rows]),
        values.sparse_array(contents),
        values.sparse_array([row.fault for row in rows]),
        values.sparse_array([row.ordering_key for row in rows]),
        values.sparse_array([row.idempotency_key for row in rows]),
        values.sparse_array([row.correlation_id for row in rows]),
        values.sparse_array([row.headers for row in rows]),
        values.sparse_array([row.metadata for row in rows]),
        str(lost),
        worker,
    )
    return Op(_TAKE, params, lambda found: Taken(*found[0]))


_COLUMNS = (
    "id name protocol config:json channel event_type paused created_at:time updated_at:time taken refused lost "
    "moved_at:time processes heartbeat_at:time lag growing_since:time last_error"
)
_LIST = """
select id, name, protocol, config, channel, event_type, paused, created_at, updated_at, taken, refused, lost, moved_at,
       processes, heartbeat_at, lag, growing_since, last_error from menzil.bridges"""


def bridges(limit: int, after: str = "") -> Op[list[Record]]:
    """Read the view menzil.bridges, by name."""
    statement = _LIST + " where name > %s::text order by name limit %s::integer"
    return Op(statement, (after, str(limit)), records(_COLUMNS))


def bridge(name: str) -> Op[Record | None]:
    """Read one row of the view menzil.bridges."""
    return Op(_LIST + " where name = %s::text", (values.text("bridge", name),), record(_COLUMNS))


def bridge_positions(name: str | None = None) -> Op[list[Record]]:
    """Read the view menzil.bridge_positions."""
    statement = """
    select name, partition, position, taken, refused, lost, moved_at, lag from menzil.bridge_positions
     where %s::text is null or name = %s::text order by name, partition"""
    read = records("name partition position taken refused lost moved_at:time lag")
    return Op(statement, (name, name), read)


def _config(config: Mapping[str, Any]) -> str:
    return values.payload("config", config, json_dumps)


def _goal(channel: str | None, event_type: str | None) -> tuple[str | None, str | None]:
    return values.optional_text("channel", channel), values.optional_text("event type", event_type)
