"""Durations and points in time as people type them, read or refused with one sentence and one hint."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from menzil.model.errors import UsageError

_UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(s|sec|min|m|h|d|w)?")
_RELATIVE = re.compile(
    r"(?P<sign>[+-])(?P<off>[\d.]+ ?[a-z]+)|(?P<ago>[\d.]+ ?[a-z]+) ago|in (?P<ahead>[\d.]+ ?[a-z]+)"
)


def seconds(given: str) -> float:
    """Read a duration: seconds, or a number with a unit."""
    found = duration(given)
    if found is None:
        hint = "write seconds, or a number with a unit: 30s, 5m, 2h, 1d"
        raise UsageError(f"{given!r} is not a valid duration.", hint=hint)
    return found


def duration(given: str) -> float | None:
    """A number of seconds, or None when it is something else."""
    found = _DURATION.fullmatch(given.strip().lower())
    return None if found is None else float(found[1]) * _UNITS[found[2] or "s"]


def when(given: str) -> datetime | timedelta:
    """Read a point in time. One without a time zone is in UTC, not in the zone of this machine."""
    asked = " ".join(given.split())
    if asked.lower() == "now":
        return timedelta()
    found = _RELATIVE.fullmatch(asked.lower())
    distance = duration(found["off"] or found["ago"] or found["ahead"]) if found else None
    try:
        if found and distance is not None:
            return timedelta(seconds=distance if found["sign"] == "+" or found["ahead"] else -distance)
        moment = datetime.fromisoformat(asked)
        return moment.replace(tzinfo=UTC) if moment.utcoffset() is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        hint = 'write ISO 8601 (2026-01-31T12:00, UTC unless it says otherwise) or -1d, "2h ago", now'
        raise UsageError(f"{given!r} is not a valid time.", hint=hint) from None
