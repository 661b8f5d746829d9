"""From a message to the frames that publish it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from math import ceil
from typing import Any

from pamqp import commands

from menzil.deliver.amqp.frames import AROUND, BODY, HEADER, framed, method
from menzil.deliver.broker.envelope import Envelope
from menzil.deliver.broker.errors import MessageError
from menzil.deliver.broker.overrides import chosen, read_allowed

#: RabbitMQ closes the channel when a message is to live longer, in milliseconds; it then lives without end.
LONGEST_LIFE = 4294967295
_BASIC = commands.Basic.frame_id
_HEAD = struct.Struct(">HHQH")  # class, weight, size of the body, which properties there are
_TIMESTAMP = struct.Struct(">Q")
_ATTEMPT = b"\x0emenzil-attemptI%b"
#: What every message has: content type, headers, delivery mode, priority, message id, timestamp, type, app id.
_ALWAYS = 0x8000 | 0x2000 | 0x1000 | 0x0800 | 0x0080 | 0x0040 | 0x0020 | 0x0008
_CORRELATION_ID, _EXPIRATION = 0x0400, 0x0100
_OURS = ("menzil-attempt", "menzil-key")
_APP = b"\x06menzil"


class Publications:
    """How the messages of one endpoint become frames."""

    def __init__(self, config: Mapping[str, Any], frame_max: int) -> None:
        exchange, self._key = config["exchange"], config["routing_key"]
        mandatory = config.get("mandatory") is not False
        self._allowed = read_allowed(config)
        keys = {self._key, *self._allowed.get("routing_key", ())}
        self._publish = {key: method(commands.Basic.Publish(0, exchange, key, mandatory)) for key in keys}
        self._mode = b"\x02" if config.get("persistent") is not False else b"\x01"
        self._room = frame_max - AROUND

    def frames(self, envelope: Envelope) -> bytes:
        """Return the frames of a message, or raise MessageError."""
        body, head, room = envelope.body, self._head(envelope), self._room
        if len(head) > room:
            raise MessageError(f"The headers of the message have {len(head)} bytes, the server takes {room}.")
        key = chosen(envelope, self._allowed, "routing_key", self._key)
        parts = [self._publish[key], framed(HEADER, head)]
        parts += [framed(BODY, body[at : at + room]) for at in range(0, len(body), room)]
        return b"".join(parts)

    def _head(self, envelope: Envelope) -> bytes:
        flags, correlation_id, expiration = _ALWAYS, b"", b""
        if envelope.correlation_id is not None:
            flags |= _CORRELATION_ID
            correlation_id = _short(envelope.correlation_id, "correlation id")
        if envelope.expires_at is not None and (life := _life(envelope.expires_at)) is not None:
            flags |= _EXPIRATION
            expiration = _short(life, "expiry")
        table = _table(envelope)
        return b"".join([
            _HEAD.pack(_BASIC, 0, len(envelope.body), flags),
            _short(envelope.content_type, "content type"),
            len(table).to_bytes(4, "big"),
            table,
            self._mode,
            bytes((min(255, max(0, envelope.message.priority)),)),
            correlation_id,
            expiration,
            _short(envelope.id, "id"),
            _TIMESTAMP.pack(max(0, envelope.sent_ms // 1000)),
            _short(envelope.type, "type"),
            _APP,
        ])  # fmt: skip


def _life(expires_at: datetime) -> str | None:
    """Return the milliseconds that are left; None for more than the server can count."""
    left = ceil((expires_at - datetime.now(UTC)).total_seconds() * 1000)
    return str(max(1, left)) if left <= LONGEST_LIFE else None


def _table(envelope: Envelope) -> bytes:
    """Return the headers table."""
    parts = [_ATTEMPT % min(envelope.attempt, 2147483647).to_bytes(4, "big")]
    if envelope.key is not None:
        parts.append(_field("menzil-key", envelope.key))
    parts += [_field(name, value) for name, value in envelope.headers.items() if name not in _OURS]
    for name, value in (envelope.attributes or {}).items():
        parts.append(_field(f"cloudEvents:{name}", value))
    return b"".join(parts)


def _field(name: str, value: str) -> bytes:
    text = value.encode()
    return b"%bS%b%b" % (_short(name, "name of a header"), len(text).to_bytes(4, "big"), text)


def _short(text: str, what: str) -> bytes:
    found = text.encode()
    if len(found) > 255:
        raise MessageError(f"The {what} of the message has {len(found)} bytes, AMQP takes 255.")
    return bytes((len(found),)) + found
