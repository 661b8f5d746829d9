"""A message as every broker gets it, before it is spelled in the way of one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from menzil.deliver.broker.errors import MessageError
from menzil.deliver.http.cloudevents import STRUCTURED_TYPE, CloudEvents
from menzil.deliver.http.errors import RefusedError
from menzil.deliver.http.headers import checked
from menzil.model.message import Message

#: Names of headers that menzil writes itself. A message that was received with them and is sent on gets new ones.
OURS = frozenset({"menzil-id", "menzil-key", "menzil-type", "menzil-attempt", "correlation-id"})
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACESTATE = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,510}[\x21-\x7e])?")


@dataclass(slots=True)
class Envelope:
    """What goes over the wire with one message."""

    message: Message
    id: str  # the same at every attempt
    type: str  # the event type, or the name of the endpoint
    body: bytes = field(repr=False)
    content_type: str
    correlation_id: str | None
    headers: dict[str, str] = field(repr=False)  # of the endpoint and the message, and the trace; in lower case
    attributes: dict[str, str] | None  # of CloudEvents in binary mode

    # Read when a protocol asks for them, because not every protocol does.

    @property
    def key(self) -> str | None:
        """The ordering key."""
        return self.message.ordering_key

    @property
    def attempt(self) -> int:
        """How often the message was handed out, this time included."""
        return self.message.attempt

    @property
    def sent_at(self) -> datetime:
        """When it was sent, in UTC."""
        return self.message.created_at.astimezone(UTC)

    @property
    def expires_at(self) -> datetime | None:
        """When no caller wants it any more."""
        return self.message.expires_at


def compose(
    message: Message, fixed: Mapping[str, str], events: CloudEvents | None, trace: Mapping[str, str] | None
) -> Envelope:
    """Read a message, or raise MessageError. `fixed` are the headers of the endpoint, which a message cannot replace.

    `trace` is the span of this delivery; without it the receiver gets the trace that the sender left in the metadata.
    """
    try:
        about: dict[str, Any] = message.metadata or {}
        given = message.headers
        correlation_id = message.correlation_id
        headers = dict(fixed)
        if given:
            own = {name: value for name, value in checked(given, "message").items() if name not in OURS}
            headers = own | headers
    except (RecursionError, ValueError):
        raise MessageError("The headers or the metadata of the message cannot be read.") from None
    except RefusedError as error:
        raise MessageError(str(error)) from None
    if (trace or about) and "traceparent" not in headers:
        headers |= trace or _trace(about)
    content = message.content
    kind = headers.pop("content-type", "application/json" if content is None else "application/octet-stream")
    body = message.payload_json if content is None else content
    if events is not None and events.structured:
        body, kind = events.document(message, kind), STRUCTURED_TYPE
    told = about.get("event_type")
    return Envelope(
        message,
        message.wire_id,
        told if isinstance(told, str) and told else message.channel,
        body,
        kind,
        str(correlation_id) if correlation_id else None,
        headers,
        events.attributes(message) if events is not None and not events.structured else None,
    )


def _trace(about: Mapping[str, Any]) -> dict[str, str]:
    traceparent, tracestate = about.get("traceparent"), about.get("tracestate")
    if not isinstance(traceparent, str) or not _TRACEPARENT.fullmatch(traceparent):
        return {}
    found = {"traceparent": traceparent}
    if isinstance(tracestate, str) and _TRACESTATE.fullmatch(tracestate):
        found["tracestate"] = tracestate
    return found
