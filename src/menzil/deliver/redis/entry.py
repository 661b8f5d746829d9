"""From a message to the command that adds it to a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from menzil.deliver.broker.envelope import Envelope
from menzil.deliver.redis.resp import arguments

#: One atomic step: the id is remembered beside the stream for a while, so a repeat adds nothing. It returns the entry,
#: and whether it was there already.
ONCE = b"""local old = redis.call('GET', KEYS[2])
if old then return {old, 1} end
local entry = redis.call('XADD', KEYS[1], unpack(ARGV, 2))
if entry then redis.call('SET', KEYS[2], entry, 'EX', ARGV[1]) end
return {entry, 0}"""


class Entries:
    """How the messages of one endpoint become commands."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.stream = config["stream"]
        stream = self.stream.encode()
        options: list[bytes] = []
        if config.get("create_stream") is False:
            options.append(b"NOMKSTREAM")
        if maxlen := config.get("maxlen"):
            options += [b"MAXLEN", b"=" if config.get("maxlen_exact") else b"~", b"%d" % maxlen]
        options.append(b"*")
        self._xadd = arguments([b"XADD", stream, *options])
        self._xadd_parts = 2 + len(options)
        self.dedup_seconds = int(config.get("dedup_seconds") or 0)
        self._options = arguments([b"%d" % self.dedup_seconds, *options])
        self._options_parts = 1 + len(options)
        self._prefix = _beside(self.stream)

    def plain(self, envelope: Envelope) -> bytes:
        """Return XADD."""
        parts = _fields(envelope)
        return b"*%d\r\n" % (self._xadd_parts + len(parts)) + self._xadd + arguments(parts)

    def once(self, envelope: Envelope, script: bytes) -> bytes:
        """Return the call of the script that adds a message once."""
        parts = _fields(envelope)
        keys = [b"EVALSHA", script, b"2", self.stream.encode(), f"{self._prefix}{envelope.id}".encode()]
        count = len(keys) + self._options_parts + len(parts)
        return b"*%d\r\n" % count + arguments(keys) + self._options + arguments(parts)


def _beside(stream: str) -> str:
    """Return how keys beside a stream begin: in a cluster they are on the same node as the stream."""
    opening = stream.find("{")
    has_tag = opening >= 0 and stream.find("}", opening + 2) > 0
    return f"{stream}:menzil:" if has_tag else f"{{{stream}}}:menzil:"


def _fields(envelope: Envelope) -> list[bytes]:
    """Return the fields of an entry, names and values by turns."""
    sent_at = envelope.sent_at.isoformat().replace("+00:00", "Z")
    parts = [b"id", envelope.id.encode(), b"type", envelope.type.encode(), b"payload", envelope.body]
    parts += [
        b"content_type",
        envelope.content_type.encode(),
        b"attempt",
        b"%d" % envelope.attempt,
        b"ts",
        sent_at.encode(),
    ]
    if envelope.key is not None:
        parts += [b"key", envelope.key.encode()]
    if envelope.correlation_id is not None:
        parts += [b"correlation_id", envelope.correlation_id.encode()]
    for name, value in envelope.headers.items():
        parts += [f"h:{name}".encode(), value.encode()]
    for name, value in (envelope.attributes or {}).items():
        parts += [f"ce_{name}".encode(), value.encode()]
    return parts
