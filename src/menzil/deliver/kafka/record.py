"""From a message to a record."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from menzil.deliver.broker.envelope import EPOCH_MS, Envelope
from menzil.deliver.broker.errors import MessageError
from menzil.deliver.carried import TYPES
from menzil.deliver.kafka.config import MOST_BYTES
from menzil.model.message import Plain

Headers = list[tuple[str, str | bytes | None]]  # as the client declares it; ours are bytes


#: Value, key, headers, and milliseconds since 1970: what `produce` gets, the topic aside.
Record = tuple[bytes, bytes | None, Headers, int]


class Records:
    """How the messages of one endpoint become records."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        key = config.get("key") or "ordering_key"
        self._key = key if isinstance(key, str) else "text"
        self._text = key["text"].encode() if isinstance(key, dict) else b""
        self._most = int(config.get("max_message_bytes") or MOST_BYTES)

    def of_plain(self, plain: Plain) -> Record | None:
        """Return the record of a plain message, without an Envelope; None for one that `of` has to judge."""
        number, channel, body, is_json, attempt, key, sent = plain
        if self._key != "ordering_key":
            return None
        shared, size = _shared(channel, TYPES[is_json], attempt)
        id, ordering = b"msg_%d_%x" % (number, sent), None if key is None else key.encode()
        if size + len(id) + len(body) + (0 if ordering is None else len(ordering)) > self._most:
            return None
        return body, ordering, [("menzil-id", id), *shared], EPOCH_MS + sent // 1000

    def of(self, envelope: Envelope) -> Record:
        """Return a record, or raise MessageError."""
        ordering = None if envelope.key is None else envelope.key.encode()
        shared, size = _shared(envelope.type, envelope.content_type, envelope.attempt)
        id, body = envelope.id.encode(), envelope.body
        headers: Headers = [("menzil-id", id), *shared]
        size += len(id) + len(body)
        key = ordering
        if self._key != "ordering_key":
            key = {"message_id": id, "text": self._text}.get(self._key)
            if ordering is not None:
                headers.append(("menzil-key", ordering))
        if key is not None:
            size += len(key)
        if envelope.correlation_id is not None:
            headers.append(("correlation-id", envelope.correlation_id.encode()))
        if envelope.attributes:
            headers += [(f"ce_{name}", value.encode()) for name, value in envelope.attributes.items()]
        if envelope.headers:
            ours = {name for name, _ in headers}
            headers += [(name, value.encode()) for name, value in envelope.headers.items() if name not in ours]
        if len(headers) > len(shared) + 1:
            size += sum([len(name) + len(value or b"") for name, value in headers[len(shared) + 1 :]])
        if size > self._most:
            raise MessageError(f"The message has {size} bytes with its headers, max_message_bytes is {self._most}.")
        return body, key, headers, envelope.sent_ms


@lru_cache(maxsize=256)
def _shared(kind: str, content_type: str, attempt: int) -> tuple[Headers, int]:
    """Return the headers that most records of a batch share, and the bytes of these and of the name of the id."""
    texts = {"menzil-type": kind, "menzil-attempt": str(attempt), "content-type": content_type}
    headers: Headers = [(name, value.encode()) for name, value in texts.items()]
    return headers, len("menzil-id") + sum([len(name) + len(value.encode()) for name, value in texts.items()])
