"""CloudEvents 1.0 over HTTP: the attributes as headers (binary), or all in one JSON document (structured)."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC
from typing import Any
from urllib.parse import quote

from menzil.model.message import Message
from menzil.model.wire import json_dumps

STRUCTURED_TYPE = "application/cloudevents+json"
DEFAULT_TYPE = "menzil.message"
# Printable ASCII but for space, quote and percent travels as it is.
_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


@dataclass(frozen=True, slots=True)
class CloudEvents:
    """How one endpoint wants its events."""

    structured: bool
    source: str | None = None
    type: str | None = None

    def attributes(self, message: Message) -> dict[str, str]:
        """Return what the event says about itself, but for the type of its data."""
        about: dict[str, Any] = message.metadata or {}
        told = about.get("event_type")
        found = {
            "specversion": "1.0",
            "id": message.wire_id,
            "source": self.source or f"/menzil/{quote(message.channel, safe='')}",
            "type": self.type or (told if isinstance(told, str) and told else DEFAULT_TYPE),
            "time": message.created_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        }
        if isinstance(about.get("subject"), str) and about["subject"]:
            found["subject"] = about["subject"]
        if message.ordering_key:
            found["partitionkey"] = message.ordering_key
        if message.correlation_id:
            found["correlationid"] = str(message.correlation_id)
        return found

    def headers(self, message: Message) -> dict[str, str]:
        """Return the attributes as headers."""
        return {f"ce-{name}": quote(value, safe=_PLAIN) for name, value in self.attributes(message).items()}

    def document(self, message: Message, content_type: str) -> bytes:
        """Return the event as one JSON document. JSON data is put in as the database gave it, not written anew."""
        head = json_dumps(self.attributes(message) | {"datacontenttype": content_type})
        opening = (head if isinstance(head, bytes) else head.encode())[:-1]
        if message.content is None:
            return opening + b',"data":' + message.payload_json + b"}"
        return opening + b',"data_base64":"' + b64encode(message.content) + b'"}'
