"""From a record to a message: the mapping of the way out, backwards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from uuid import UUID

from menzil.bridge.source import Record
from menzil.deliver.broker.envelope import OURS
from menzil.deliver.http.headers import FORBIDDEN
from menzil.model.wire import json_dumps
from menzil.ops.bridges import Row, Spec

_JSON = re.compile(r"\s*(application|text)/([\w.+-]*\+)?json\s*(;.*)?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,255}")
_BAD = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LONGEST = 8192
#: Of the broker or of menzil itself: what they say is kept elsewhere, or is over when the record has come in.
_DROPPED = OURS | {"nats-msg-id", "x-menzil-attempt"}
_TRACE = ("traceparent", "tracestate")


class Mapper:
    """How the records of one bridge become messages."""

    def __init__(self, spec: Spec, *, has_positions: bool) -> None:
        self._name = spec.name
        self._body = spec.config.get("body") or "auto"
        self._publishes = spec.event_type is not None
        self._most = int(spec.config.get("max_record_bytes") or 0)
        self._has_positions = has_positions

    def row(self, record: Record, partition: str) -> Row:
        """Return what bridge_take gets. Nothing in a record raises: what cannot be kept becomes a fault."""
        named, left_out = _headers(record.headers)
        told = {name: named.pop(name, None) for name in ("menzil-id", "menzil-type", "menzil-key", "correlation-id")}
        id = record.id or named.pop("nats-msg-id", None) or told["menzil-id"]
        kind = record.content_type or named.pop("content-type", None)
        correlation_id = record.correlation_id or told["correlation-id"]
        uuid = _uuid(correlation_id)
        from_where: dict[str, Any] = {"name": self._name, "partition": partition, "position": record.position, "id": id}
        from_where |= {
            "type": record.type or told["menzil-type"],
            "subject": record.subject,
            "left_out": left_out or None,
        }
        from_where["correlation_id"] = correlation_id if uuid is None else None
        kept = {key: _storable(value) if isinstance(value, str) else value for key, value in from_where.items()}
        metadata: dict[str, Any] = {"bridge": {key: value for key, value in kept.items() if value is not None}}
        metadata |= {name: named.pop(name) for name in _TRACE if name in named}
        headers = {
            name: value for name, value in named.items() if name not in _DROPPED and not name.startswith("nats-")
        }
        is_json = self._is_json(kind)
        if kind and not (is_json and _JSON.fullmatch(kind)) and kind.lower() != "application/octet-stream":
            headers["content-type"] = kind
        text, content, fault = self._split(record, is_json)
        return Row(
            text,
            content,
            fault,
            _key(record.key if record.key is not None else told["menzil-key"]),
            _once(id, record.body, "text" if content is None else "bytes") if id and not self._has_positions else None,
            uuid,
            _json(headers) if headers else None,
            _json(metadata),
        )

    def _is_json(self, kind: str | None) -> bool:
        if self._publishes or self._body == "json":
            return True
        return self._body == "auto" and (kind is None or _JSON.fullmatch(kind) is not None)

    def _split(self, record: Record, is_json: bool) -> tuple[str | None, bytes | None, str | None]:
        body = record.body
        if record.fault is not None:
            return None, body or b"", _storable(record.fault)
        if body is None:
            return None, b"", "The record has no body."
        if self._most and len(body) > self._most:
            return None, body, f"The record has {len(body)} bytes, the limit of the bridge is {self._most}."
        if not is_json:
            return None, body, None
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return None, body, "The body is not JSON: it is not text in UTF-8."
        # PostgreSQL takes no NUL, neither as it is nor escaped; the second is found there.
        return (None, body, "The body is not JSON: it has a NUL.") if "\x00" in text else (text, None, None)


def _headers(given: Any) -> tuple[dict[str, str], list[str]]:
    """Return the headers that a message can carry, by lower-case name, and the names of the others."""
    named: dict[str, str] = {}
    left_out: list[str] = []
    for raw_name, raw in given:
        name = raw_name.lower()
        try:
            value = raw.decode() if isinstance(raw, bytes) else raw
        except UnicodeDecodeError:
            value = None
        fits = value is not None and not _BAD.search(value) and len(value.encode("utf-8", "replace")) <= _LONGEST
        is_known = _NAME.fullmatch(name) and name not in FORBIDDEN and name not in named  # of a repeated one, the first
        if value is not None and fits and is_known and _is_unicode(value):
            named[name] = value
        else:
            left_out.append(_storable(raw_name)[:255])
    return named, left_out


def _key(key: bytes | str | None) -> str | None:
    """Return a record key as an ordering key. One that is no text keeps its order under another name."""
    if not key:
        return None
    if isinstance(key, str):
        return _storable(key)
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"
    return f"0x{key.hex()}" if "\x00" in text else text


def _once(id: str, body: bytes | None, kind: str) -> str:
    """Return the idempotency key of a record. Senders may use an id again for another body: that is no repeat.

    Nor is the same body as JSON and as bytes: the queue would refuse the second, and the records behind it with it.
    """
    digest = sha256((b"" if kind == "text" else b"bytes ") + (body or b"")).hexdigest()[:16]
    shown = _storable(id)
    return f"{shown if len(shown.encode()) <= 200 else sha256(id.encode('utf-8', 'replace')).hexdigest()}#{digest}"


def _uuid(text: str | None) -> str | None:
    try:
        return str(UUID(text)) if text else None
    except ValueError:
        return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _storable(text: str) -> str:
    """Return a text of a stranger as PostgreSQL can store it."""
    return text.replace("\x00", "\\0").encode("utf-8", "backslashreplace").decode()


def _json(value: Mapping[str, Any]) -> str:
    written = json_dumps(value)
    return written if isinstance(written, str) else written.decode()
