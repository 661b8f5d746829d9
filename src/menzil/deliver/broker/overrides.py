"""What one message may change of its endpoint: the topic, subject, stream or routing key, to a value that is listed.

The metadata of a message says `"overrides": {"topic": "orders.eu"}`; `allow_overrides` of the endpoint lists values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from menzil.deliver.broker.envelope import NOTHING, Envelope
from menzil.deliver.broker.errors import MessageError

Allowed = Mapping[str, frozenset[str]]


def read_allowed(config: Mapping[str, Any]) -> Allowed:
    """Read `allow_overrides` of a config."""
    return {name: frozenset(values) for name, values in (config.get("allow_overrides") or {}).items()}


def chosen(envelope: Envelope, allowed: Allowed, name: str, default: str) -> str:
    """Return the value that this message wants, or the endpoint's. Raises MessageError when it is not allowed."""
    wanted = envelope.overrides
    if wanted is NOTHING:
        return default
    if not isinstance(wanted, dict) or not wanted.keys() <= {name}:
        raise MessageError(f"The metadata key overrides of the message is not an object with the key {name} alone.")
    value = wanted.get(name, default)
    if value == default:
        return default
    if not isinstance(value, str) or value not in allowed.get(name, ()):
        raise MessageError(f"The message wants another {name} than the endpoint, and allow_overrides does not list it.")
    return value
