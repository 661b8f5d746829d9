"""Every value of a table of the lake by engines that share no code, and what is counted over it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def plain(value: Any) -> Any:
    """A value in one spelling: times in microseconds, bytes as they are, the fields of a try in their order."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=value.tzinfo or UTC) - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, Mapping):
        return tuple(plain(one) for one in value.values())
    if isinstance(value, list | tuple):
        return tuple(plain(one) for one in value)
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def counted(rows: Iterable[Mapping[str, Any]], names: list[str]) -> tuple[int, int]:
    """How many rows, and the sum of a hash of each over all columns, NULL apart from empty."""
    number, total = 0, 0
    for row in rows:
        text = repr([plain(row[name]) for name in names]).encode("utf-8", "surrogatepass")
        total += int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
        number += 1
    return number, total % 2**64


def filled(rows: Iterable[Mapping[str, Any]], names: list[str]) -> Counter[str]:
    """How many values of each column are not NULL."""
    return Counter(name for row in rows for name in names if row[name] is not None)
