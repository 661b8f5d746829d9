"""From a message to the bytes that publish it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import ceil
from urllib.parse import quote

from menzil.deliver.broker.envelope import Envelope
from menzil.deliver.broker.errors import MessageError

_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_BAD = re.compile(r"[\x00-\x1f\x7f]|^\s|\s$")


def head(envelope: Envelope, *, dedup: bool, stream: str | None, ttl: bool) -> bytes:
    """Return the headers of a message, or raise MessageError."""
    found = {"menzil-type": envelope.type, "menzil-attempt": str(envelope.attempt)}
    # Without dedup the id is still sent, under a name that the server does not look at.
    found["Nats-Msg-Id" if dedup else "menzil-id"] = envelope.id
    if stream:
        found["Nats-Expected-Stream"] = stream
    if envelope.key is not None:
        found["menzil-key"] = envelope.key
    if envelope.correlation_id is not None:
        found["correlation-id"] = envelope.correlation_id
    if ttl and envelope.expires_at is not None:
        left = (envelope.expires_at - datetime.now(UTC)).total_seconds()
        found["Nats-TTL"] = f"{max(1, ceil(left))}s"
    if envelope.attributes is None:
        found["content-type"] = envelope.content_type
    else:
        found |= {f"ce-{name}": quote(value, safe=_PLAIN) for name, value in envelope.attributes.items()}
        found["ce-datacontenttype"] = envelope.content_type
    lines = ["NATS/1.0"]
    for name, value in envelope.headers.items():
        if name.startswith("nats-"):
            raise MessageError(f"The message may not set the header {name}.")
        if name not in found:
            lines.append(_line(name, value))
    lines += [_line(name, value) for name, value in found.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _line(name: str, value: str) -> str:
    if _BAD.search(value):
        raise MessageError(f"The header {name} would not arrive as it is: it has control characters or outer spaces.")
    return f"{name}: {value}"
