"""From a message to the bytes that publish it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from math import ceil
from urllib.parse import quote

from menzil.deliver.broker.envelope import OURS, Envelope
from menzil.deliver.broker.errors import MessageError
from menzil.deliver.carried import TYPES
from menzil.model.message import Plain

_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_BAD = re.compile(r"[\x00-\x1f\x7f]|^\s|\s$")


def head(envelope: Envelope, *, dedup: bool, stream: str | None, ttl: bool) -> bytes:
    """Return the headers of a message, or raise MessageError."""
    binary, key = envelope.attributes, envelope.key
    told = envelope.content_type if binary is None else None
    text = f"{_opening(envelope.type, envelope.attempt, told, dedup)}{envelope.id}\r\n"
    if key is not None:
        text += f"menzil-key: {_checked('menzil-key', key)}\r\n"
    found: dict[str, str] = {}
    if binary is not None:
        found |= {f"ce-{name}": quote(value, safe=_PLAIN) for name, value in binary.items()}
        found["ce-datacontenttype"] = envelope.content_type
    if stream:
        found["Nats-Expected-Stream"] = stream
    if envelope.correlation_id is not None:
        found["correlation-id"] = envelope.correlation_id
    if ttl and envelope.expires_at is not None:
        left = (envelope.expires_at - datetime.now(UTC)).total_seconds()
        found["Nats-TTL"] = f"{max(1, ceil(left))}s"
    for name, value in envelope.headers.items():
        if name.startswith("nats-"):
            raise MessageError(f"The message may not set the header {name}.")
        if name not in found and not (name in OURS and f"\r\n{name}: " in text):
            text += f"{name}: {_checked(name, value)}\r\n"
    for name, value in found.items():
        text += f"{name}: {_checked(name, value)}\r\n"
    return f"{text}\r\n".encode()


def plain_head(plain: Plain, *, dedup: bool, stream: str | None) -> bytes:
    """Return the headers of a plain message as `head` does, without an Envelope. Raises MessageError."""
    id, channel, _, is_json, attempt, key, sent = plain
    text = f"{_opening(channel, attempt, TYPES[is_json], dedup)}msg_{id}_{sent:x}\r\n"
    if key is not None:
        text += f"menzil-key: {_checked('menzil-key', key)}\r\n"
    if stream:
        text += f"Nats-Expected-Stream: {_checked('Nats-Expected-Stream', stream)}\r\n"
    return f"{text}\r\n".encode()


@lru_cache(maxsize=256)
def _opening(kind: str, attempt: int, content_type: str | None, dedup: bool) -> str:
    """Return what most messages of a batch begin with, up to their ids."""
    text = f"NATS/1.0\r\nmenzil-type: {_checked('menzil-type', kind)}\r\nmenzil-attempt: {attempt}\r\n"
    if content_type is not None:
        text += f"content-type: {_checked('content-type', content_type)}\r\n"
    # Without dedup the id is still sent, under a name that the server does not look at.
    return text + ("Nats-Msg-Id: " if dedup else "menzil-id: ")


def _checked(name: str, value: str) -> str:
    # The first question is the quick one, and true of nearly all values.
    if not (value.isprintable() and value == value.strip()) and _BAD.search(value):
        raise MessageError(f"The header {name} would not arrive as it is: it has control characters or outer spaces.")
    return value
