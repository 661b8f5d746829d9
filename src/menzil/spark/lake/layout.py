"""Months, and names of directories, as text. No I/O."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

from menzil.model.errors import UsageError

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ODD = re.compile(r"[^A-Za-z0-9._-]")
_MONTH = re.compile(r"(\d{4,6})-(\d{2})")


def directory(name: str) -> str:
    """A directory for something of this name: the name, or when it is long or has odd letters, a like one with a hash.

    No tool quotes or decodes such a name, so all of them read the same one.
    """
    if _PLAIN.fullmatch(name):
        return name
    return f"{_ODD.sub('_', name)[:60]}-{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:12]}"


def month_label(at: datetime) -> str:
    """2026-03, of a time in that month (UTC)."""
    at = at.astimezone(UTC)
    return f"{at.year:04}-{at.month:02}"


def month_start(label: str) -> datetime:
    """The first moment of 2026-03."""
    found = _MONTH.fullmatch(label)
    if found is None or not 1 <= int(found[2]) <= 12:
        raise ValueError(f"{label!r} is no month")
    return datetime(int(found[1]), int(found[2]), 1, tzinfo=UTC)


def demand_month(label: str) -> None:
    """Refuse what is no month, which would choose nothing."""
    try:
        month_end(label)
    except ValueError:
        raise UsageError(f"{label!r} is not a month.", hint="write it as 2026-03") from None


def month_end(label: str) -> datetime:
    """The first moment after it."""
    start = month_start(label)
    return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)


def month_number(label: str) -> int:
    """Months since 1970, as Iceberg counts them."""
    start = month_start(label)
    return (start.year - 1970) * 12 + start.month - 1


def month_of(number: int) -> str:
    """The same back."""
    return f"{1970 + number // 12:04}-{number % 12 + 1:02}"
