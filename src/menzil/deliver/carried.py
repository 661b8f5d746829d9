"""What every delivery takes over from a message, whether it goes by HTTP or to a broker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from menzil.model.message import Message

UNREADABLE = "The headers or the metadata of the message cannot be read."

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACESTATE = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,510}[\x21-\x7e])?")


#: The content type of a body where no header says another, by whether it is JSON.
TYPES = {True: "application/json", False: "application/octet-stream"}


def plain_type(message: Message) -> str:
    """The content type of a body, where no header says another."""
    return TYPES[message.content is None]


def plain_body(message: Message) -> bytes:
    """The body as it was sent."""
    content = message.content
    return message.payload_json if content is None else content


def trace_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The headers of the trace that the sender left in the metadata; none where it is not well formed."""
    traceparent, tracestate = metadata.get("traceparent"), metadata.get("tracestate")
    if not isinstance(traceparent, str) or not _TRACEPARENT.fullmatch(traceparent):
        return {}
    found = {"traceparent": traceparent}
    if isinstance(tracestate, str) and _TRACESTATE.fullmatch(tracestate):
        found["tracestate"] = tracestate
    return found
