"""From a message to the command that adds it to a stream."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from menzil.deliver.broker.envelope import Envelope, sent_text
from menzil.deliver.carried import TYPES
from menzil.deliver.redis.resp import arguments
from menzil.model.message import Plain

#: One atomic step: the id is remembered beside the stream for a while, so a repeat adds nothing. It returns the entry,
#: and whether it was there already.
ONCE = b"""local old = redis.call('GET', KEYS[2])
if old then return {old, 1} end
local entry = redis.call('XADD', KEYS[1], unpack(ARGV, 2))
if entry then redis.call('SET', KEYS[2], entry, 'EX', ARGV[1]) end
return {entry, 0}"""

#: Fields that every entry has, spelled once: a format for all of them takes half the time of one for each.
_EACH = b"".join([arguments([name]) + b"$%d\r\n%b\r\n" for name in (b"id", b"payload", b"ts")])
_ALWAYS = 6  # those, and three that most entries of a batch share


@lru_cache(maxsize=256)
def _shared(kind: str, content_type: str, attempt: int) -> bytes:
    """Return the fields that most entries of a batch share."""
    parts = [b"type", kind.encode(), b"content_type", content_type.encode(), b"attempt", b"%d" % attempt]
    return arguments(parts)


class Entries:
    """How messages become commands that add them to one stream."""

    def __init__(self, config: Mapping[str, Any], stream: str | None = None) -> None:
        """Read a config; `stream` is another one than the config names."""
        self.stream: str = stream or config["stream"]
        name = self.stream.encode()
        options: list[bytes] = []
        if config.get("create_stream") is False:
            options.append(b"NOMKSTREAM")
        if maxlen := config.get("maxlen"):
            options += [b"MAXLEN", b"=" if config.get("maxlen_exact") else b"~", b"%d" % maxlen]
        options.append(b"*")
        self._xadd = arguments([b"XADD", name, *options])
        self._xadd_parts = 2 + len(options)
        self.dedup_seconds = int(config.get("dedup_seconds") or 0)
        self._options = arguments([b"%d" % self.dedup_seconds, *options])
        self._options_parts = 1 + len(options)
        self._prefix = _beside(self.stream)

    def plain(self, envelope: Envelope) -> bytes:
        """Return XADD."""
        count, fields = _fields(envelope)
        return b"*%d\r\n%b%b" % (self._xadd_parts + count, self._xadd, fields)

    def of_plain(self, plain: Plain, script: bytes) -> bytes:
        """Return the command for a plain message, without an Envelope."""
        number, channel, body, is_json, attempt, key, sent = plain
        id, sent_at = b"msg_%d_%x" % (number, sent), sent_text(sent).encode()
        fields = _shared(channel, TYPES[is_json], attempt)
        fields += _EACH % (len(id), id, len(body), body, len(sent_at), sent_at)
        count = 2 * _ALWAYS
        if key is not None:
            count, fields = count + 2, fields + arguments([b"key", key.encode()])
        if script:
            return self._once(id.decode(), script, count, fields)
        return b"*%d\r\n%b%b" % (self._xadd_parts + count, self._xadd, fields)

    def once(self, envelope: Envelope, script: bytes) -> bytes:
        """Return the call of the script that adds a message once."""
        count, fields = _fields(envelope)
        return self._once(envelope.id, script, count, fields)

    def _once(self, id: str, script: bytes, count: int, fields: bytes) -> bytes:
        keys = [b"EVALSHA", script, b"2", self.stream.encode(), f"{self._prefix}{id}".encode()]
        return b"*%d\r\n%b%b%b" % (len(keys) + self._options_parts + count, arguments(keys), self._options, fields)


def _beside(stream: str) -> str:
    """Return how keys beside a stream begin: in a cluster they are on the same node as the stream."""
    opening = stream.find("{")
    has_tag = opening >= 0 and stream.find("}", opening + 2) > 0
    return f"{stream}:menzil:" if has_tag else f"{{{stream}}}:menzil:"


def _fields(envelope: Envelope) -> tuple[int, bytes]:
    """Return how many parts of a command the fields of an entry are, and these parts."""
    id, body, sent_at, key = envelope.id.encode(), envelope.body, envelope.sent_text.encode(), envelope.key
    fixed = _shared(envelope.type, envelope.content_type, envelope.attempt)
    fixed += _EACH % (len(id), id, len(body), body, len(sent_at), sent_at)
    parts: list[bytes] = []
    if key is not None:
        parts += [b"key", key.encode()]
    if envelope.correlation_id is not None:
        parts += [b"correlation_id", envelope.correlation_id.encode()]
    for name, value in envelope.headers.items():
        parts += [f"h:{name}".encode(), value.encode()]
    for name, value in (envelope.attributes or {}).items():
        parts += [f"ce_{name}".encode(), value.encode()]
    return 2 * _ALWAYS + len(parts), fixed + arguments(parts) if parts else fixed
