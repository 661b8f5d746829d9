"""From a message to the bytes that publish it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from math import ceil
from typing import Any

from menzil.deliver.broker.envelope import OURS, Envelope
from menzil.deliver.broker.errors import MessageError
from menzil.deliver.mqtt.packet import LARGEST, data, number, text


class Publications:
    """Writes the messages of one endpoint."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.qos = int(config.get("qos", 1))
        self._five = config.get("version", "5") == "5"
        self._head = bytes((0x30 | self.qos << 1 | (1 if config.get("retain") else 0),))

    def write(self, envelope: Envelope, topic: str, packet_id: int, most: int, peer: str) -> bytes:
        """Return a PUBLISH packet, or raise MessageError. `most` is how many bytes the server takes in one."""
        name = data(topic.encode())
        told = properties(envelope) if self._five else b""
        body = envelope.body
        size = len(name) + (2 if self.qos else 0) + len(told) + len(body)
        if size > LARGEST:
            raise MessageError(f"The message has {size} bytes with its properties, MQTT takes {LARGEST}.")
        length = number(size)
        if 1 + len(length) + size > most:
            had = 1 + len(length) + size
            raise MessageError(f"The message has {had} bytes with its properties, {peer} takes {most}.")
        mark = packet_id.to_bytes(2, "big") if self.qos else b""
        return b"".join((self._head, length, name, mark, told, body))


def _pair(name: str) -> bytes:
    return b"\x26" + data(name.encode())


_ID, _TYPE, _ATTEMPT, _KEY = (_pair(f"menzil-{word}") for word in ("id", "type", "attempt", "key"))


def properties(envelope: Envelope) -> bytes:
    """Write what MQTT 5 carries besides the payload."""
    parts = [
        b"\x03" + text(envelope.content_type, "The content type"),
        _ID + data(envelope.id.encode()),
        _TYPE + text(envelope.type, "menzil-type"),
        _ATTEMPT + data(b"%d" % envelope.attempt),
    ]
    if envelope.key is not None:
        parts.append(_KEY + text(envelope.key, "menzil-key"))
    if envelope.expires_at is not None:
        left = ceil((envelope.expires_at - datetime.now(UTC)).total_seconds())
        parts.append(b"\x02" + min(max(1, left), 0xFFFFFFFF).to_bytes(4, "big"))
    if envelope.correlation_id is not None:
        parts.append(b"\x09" + data(envelope.correlation_id.encode()))
    event = envelope.attributes or {}
    for name, value in event.items():
        parts.append(_pair(name) + text(value, name))
    for name, value in envelope.headers.items():
        if name not in OURS and name not in event:
            parts.append(b"\x26" + text(name, "The name of a header") + text(value, f"The header {name}"))
    written = b"".join(parts)
    return number(len(written)) + written
