"""The trace that a message belongs to, for log lines; read without OpenTelemetry, which may not be installed."""

from __future__ import annotations

import re

from menzil.model.message import Message
from menzil.telemetry.names import TRACEPARENT

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def trace_id_of(message: Message) -> str | None:
    """The trace that the sender wrote into the metadata; None when there is none that can be read."""
    try:
        metadata = message.metadata
    except Exception:  # whatever the JSON library of the program raises: a log line goes without a trace
        return None
    given = metadata.get(TRACEPARENT) if isinstance(metadata, dict) else None
    found = _TRACEPARENT.fullmatch(given) if isinstance(given, str) else None
    return None if found is None else found[1]
