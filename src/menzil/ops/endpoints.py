"""Endpoints: channels with a destination attached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from menzil.model.wire import json_dumps
from menzil.ops import op, values
from menzil.ops.op import Op
from menzil.ops.records import Record, records


def create_endpoint(name: str, protocol: str, config: Mapping[str, Any]) -> Op[int]:
    """menzil.create_endpoint."""
    params = (values.text("endpoint", name), values.text("protocol", protocol), _config(config))
    return Op("select menzil.create_endpoint(%s::text, %s::text, %s::jsonb)", params, op.integer)


def alter_endpoint(name: str, config: Mapping[str, Any]) -> Op[None]:
    """menzil.alter_endpoint."""
    params = (values.text("endpoint", name), _config(config))
    return Op("select menzil.alter_endpoint(%s::text, %s::jsonb)", params, op.nothing)


def drop_endpoint(name: str) -> Op[None]:
    """menzil.drop_endpoint."""
    return Op("select menzil.drop_endpoint(%s::text)", (values.text("endpoint", name),), op.nothing)


def enable_endpoint(name: str) -> Op[None]:
    """menzil.enable_endpoint."""
    return Op("select menzil.enable_endpoint(%s::text)", (values.text("endpoint", name),), op.nothing)


def disable_endpoint(name: str) -> Op[None]:
    """menzil.disable_endpoint."""
    return Op("select menzil.disable_endpoint(%s::text)", (values.text("endpoint", name),), op.nothing)


def validate_endpoint_config(protocol: str, config: Mapping[str, Any]) -> Op[bool]:
    """menzil.validate_endpoint_config."""
    params = (values.text("protocol", protocol), _config(config))
    return Op("select menzil.validate_endpoint_config(%s::text, %s::jsonb)", params, op.boolean)


def set_retry_policy(name: str, policy: Mapping[str, Any] | None) -> Op[None]:
    """menzil.set_retry_policy."""
    written = None if policy is None else values.payload("retry policy", dict(policy), json_dumps)
    params = (values.text("endpoint", name), written)
    return Op("select menzil.set_retry_policy(%s::text, %s::jsonb)", params, op.nothing)


def purge_endpoint(name: str) -> Op[int]:
    """menzil.purge_endpoint."""
    return Op("select menzil.purge_endpoint(%s::text)", (values.text("endpoint", name),), op.integer)


def reset_circuit_breaker(name: str) -> Op[None]:
    """menzil.reset_circuit_breaker."""
    return Op("select menzil.reset_circuit_breaker(%s::text)", (values.text("endpoint", name),), op.nothing)


_HEALTH = """
select endpoint_name, protocol, enabled, paused, circuit_state, circuit_failure_count, circuit_opened_at, next_probe_at,
       waits_until, last_success_at, last_failure_at, pending_messages, oldest_pending_message, in_flight
  from menzil.get_endpoint_health(%s::text)"""
_HEALTH_COLUMNS = (
    "endpoint_name protocol enabled paused circuit_state circuit_failure_count circuit_opened_at:time "
    "next_probe_at:time waits_until:time last_success_at:time last_failure_at:time pending_messages "
    "oldest_pending_message:time in_flight"
)


def get_endpoint_health(name: str | None = None) -> Op[list[Record]]:
    """menzil.get_endpoint_health."""
    return Op(_HEALTH, (values.optional_text("endpoint", name),), records(_HEALTH_COLUMNS))


def _config(config: Mapping[str, Any]) -> str:
    # Configs are read by people and by SQL, so they are always plain JSON, also where payloads have another `dumps`.
    return values.payload("config", config, json_dumps)
