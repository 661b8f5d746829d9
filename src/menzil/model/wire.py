"""How values travel: text literals towards the database, PostgreSQL's binary format back.

Reading binary ourselves has two reasons. The caller's connection may carry adapters of its own (Django reads jsonb as
text), and one odd value must not spoil a whole batch: jsonb may be nested deeper than Python can parse, and
timestamptz reaches further than the year 9999. So a value is decoded when it is looked at, alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

Loads = Callable[[str], Any]
Dumps = Callable[[Any], str | bytes]

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)
_FIRST = datetime.min.replace(tzinfo=UTC)

# Compact, and in UTF-8 as it is: a database of another encoding refuses the \u escapes it cannot hold.
json_dumps: Dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
json_loads: Loads = json.loads


def read_json(raw: bytes, loads: Loads) -> Any:
    """Parse a jsonb value; its first byte is the version of the format."""
    return loads(raw[1:].decode())


def read_time(raw: bytes) -> datetime:
    """Read a timestamptz as a datetime in UTC; what lies outside the years of Python becomes the nearest one inside."""
    microseconds = int.from_bytes(raw, "big", signed=True)
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return _LAST if microseconds > 0 else _FIRST


def write_time(time: datetime) -> int:
    """Return the microseconds that a timestamptz would hold."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def read_uuid(raw: bytes) -> UUID:
    """Read a uuid."""
    return UUID(bytes=raw)
