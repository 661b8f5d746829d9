"""JSON as the pages write it: numbers exact to the digit, times and bytes as the command line writes them."""

from __future__ import annotations

import base64
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from menzil.model import exact


def dumps(value: Any, indent: int | None = None) -> str:
    """Write a JSON document."""
    return exact.dumps(value, indent=indent, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form here")
