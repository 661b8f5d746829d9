"""The redactor of a database: what its setting `redact` hides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from menzil.model.redact import MARK, Redactor
from menzil.ops import looking
from menzil.watch.finding import Run

#: Fields of messages, tries and dead letters that hold what strangers wrote, and how each is redacted.
DOCUMENTS = ("payload", "metadata", "response", "detail", "body", "old_value", "new_value")
TEXTS = ("last_error", "error", "sentence", "cause")


def redactor(run: Run) -> Redactor:
    """Read the setting; a database that has none gets the default."""
    found = {row["name"]: row["value"] for row in run(looking.settings())}
    return Redactor.of_setting(found.get("redact"))


def redacted(record: Mapping[str, Any], by: Redactor | None) -> dict[str, Any]:
    """A record with what strangers wrote in it redacted. Bytes that are not text are hidden as a whole."""
    if by is None or not by:
        return dict(record)
    found = dict(record)
    for name in DOCUMENTS:
        if found.get(name) is not None:
            found[name] = by.value(found[name])
    for name in TEXTS:
        if isinstance(found.get(name), str):
            found[name] = by.text(found[name])
    if isinstance(found.get("headers"), Mapping):
        found["headers"] = by.headers(found["headers"])
    if isinstance(found.get("content"), bytes):
        found["content"] = _bytes(found["content"], by)
    return found


def _bytes(content: bytes, by: Redactor) -> bytes:
    try:
        return by.text(content.decode()).encode()
    except UnicodeDecodeError:
        return MARK.encode()
