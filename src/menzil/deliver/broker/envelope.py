"""A message as every broker gets it, before it is spelled in the way of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from menzil.deliver.broker.errors import MessageError
from menzil.deliver.carried import UNREADABLE, plain_body, plain_type, trace_of
from menzil.deliver.http.cloudevents import STRUCTURED_TYPE, CloudEvents
from menzil.deliver.http.errors import RefusedError
from menzil.deliver.http.headers import checked
from menzil.model.message import Message

#: Names of headers that menzil writes itself. A message that was received with them and is sent on gets new ones.
OURS = frozenset({"menzil-id", "menzil-key", "menzil-type", "menzil-attempt", "correlation-id"})
#: In the place of `overrides` where the metadata has none.
NOTHING: Any = object()
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # of PostgreSQL
EPOCH_MS = 946_684_800_000  # the same, in milliseconds since 1970


@dataclass(slots=True)
class Envelope:
    """What goes over the wire with one message."""

    message: Message
    sent_us: int  # microseconds since 2000
    id: str  # the same at every attempt
    type: str  # the event type, or the name of the endpoint
    body: bytes = field(repr=False)
    content_type: str
    correlation_id: str | None
    headers: dict[str, str] = field(repr=False)  # of the endpoint and the message, and the trace; in lower case
    attributes: dict[str, str] | None  # of CloudEvents in binary mode
    overrides: object = NOTHING  # what the message wants to change of its endpoint

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
    def sent_text(self) -> str:
        """When it was sent, as RFC 3339 writes it in UTC."""
        return sent_text(self.sent_us)

    @property
    def sent_ms(self) -> int:
        """When it was sent, in milliseconds since 1970."""
        return EPOCH_MS + self.sent_us // 1000

    @property
    def expires_at(self) -> datetime | None:
        """When no caller wants it any more."""
        return self.message.expires_at


def sent_text(sent_us: int) -> str:
    """Return a time in microseconds since 2000 as RFC 3339 writes it in UTC."""
    seconds, microseconds = divmod(sent_us, 1_000_000)
    return f"{_second(seconds)}.{microseconds:06}Z" if microseconds else f"{_second(seconds)}Z"


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    """Return the text of a second since 2000: messages of a batch were sent in few of them."""
    try:
        return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    except OverflowError:  # outside the years of Python, as Message reads it
        return "9999-12-31T23:59:59" if seconds > 0 else "0001-01-01T00:00:00"


def compose(
    message: Message, fixed: Mapping[str, str], events: CloudEvents | None, trace: Mapping[str, str] | None
) -> Envelope:
    """Read a message, or raise MessageError. `fixed` are the headers of the endpoint, which a message cannot replace.

    `trace` is the span of this delivery; without it the receiver gets the trace that the sender left in the metadata.
    """
    if message.is_plain and not fixed and not trace and events is None:
        sent, body, kind = message.created_us, plain_body(message), plain_type(message)
        return Envelope(message, sent, f"msg_{message.id}_{sent:x}", message.channel, body, kind, None, {}, None)
    try:
        about: dict[str, Any] = message.metadata or {}
        given = message.headers
        correlation_id = message.correlation_id
        headers = dict(fixed)
        if given:
            own = {name: value for name, value in checked(given, "message").items() if name not in OURS}
            headers = own | headers
    except (RecursionError, ValueError):
        raise MessageError(UNREADABLE) from None
    except RefusedError as error:
        raise MessageError(str(error)) from None
    if (trace or about) and "traceparent" not in headers:
        headers |= trace or trace_of(about)
    kind = plain_type(message)
    if headers:
        kind = headers.pop("content-type", kind)
    body = plain_body(message)
    if events is not None and events.structured:
        body, kind = events.document(message, kind), STRUCTURED_TYPE
    told, sent = about.get("event_type") if about else None, message.created_us
    return Envelope(
        message,
        sent,
        f"msg_{message.id}_{sent:x}",  # wire_id, with what is known already
        told if isinstance(told, str) and told else message.channel,
        body,
        kind,
        str(correlation_id) if correlation_id else None,
        headers,
        events.attributes(message) if events is not None and not events.structured else None,
        about.get("overrides", NOTHING) if about else NOTHING,
    )
