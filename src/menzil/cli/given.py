"""What people type: JSON, files, headers, durations and times, read or refused with one sentence and one hint."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from menzil.model.errors import UsageError
from menzil.model.wire import json_dumps

_UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(s|sec|min|m|h|d|w)?")
_RELATIVE = re.compile(
    r"(?P<sign>[+-])(?P<off>[\d.]+ ?[a-z]+)|(?P<ago>[\d.]+ ?[a-z]+) ago|in (?P<ahead>[\d.]+ ?[a-z]+)"
)


@dataclass(frozen=True, slots=True)
class Written:
    """JSON as somebody wrote it: it reaches the database with every digit, not by way of Python's floats."""

    text: str


def dumps(value: Any) -> str | bytes:
    """Write a payload, which may be written already."""
    return value.text if isinstance(value, Written) else json_dumps(value)


def raw(given: str) -> bytes:
    """The words themselves, or what a file (@name) or standard input (-) holds."""
    if given == "-":
        return sys.stdin.buffer.read()
    if not given.startswith("@"):
        return given.encode("utf-8", "surrogateescape")
    try:
        with open(given[1:], "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(
            f"{given[1:]} cannot be read: {error.strerror}.", hint="write @ and the path of a file"
        ) from None


def text(given: str) -> str:
    """The same as text."""
    try:
        return raw(given).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"That is not UTF-8: byte {error.start} is no part of a character.") from None


def written(given: str, what: str, *, hint: str | None = None) -> Written:
    """Check that a text is JSON and keep it as it is."""
    parse(given, what, hint=hint)
    return Written(given)


def parse(given: str, what: str, *, hint: str | None = None) -> Any:
    """Read JSON."""
    try:
        return json.loads(given, parse_constant=_no_constant)
    except RecursionError:
        raise UsageError(f"The {what} is nested too deeply.") from None
    except ValueError as error:
        raise UsageError(f"The {what} is not JSON: {error}.", hint=hint) from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def json_object(what: str) -> Callable[[str], dict[str, Any]]:
    """Return a reader of a JSON object, of a file that holds one (@name), or of standard input (-)."""

    def read(given: str) -> dict[str, Any]:
        found = parse(text(given), what, hint='write an object such as {"key": "value"}, or @ and the path of a file')
        if not isinstance(found, dict):
            raise UsageError(f"The {what} must be a JSON object.", hint='write an object such as {"key": "value"}')
        return found

    return read


def json_value(what: str) -> Callable[[str], Written]:
    """Return a reader of any JSON value, of a file that holds one (@name), or of standard input (-)."""

    def read(given: str) -> Written:
        return written(text(given), what, hint=f"write text as a JSON string: {json.dumps(given[:50])}")

    return read


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
    """Read a point in time. One without a time zone is in UTC, whatever zone this machine is in."""
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


def headers(given: Iterable[str]) -> dict[str, str] | None:
    """Read name=value pairs."""
    found = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{pair!r} is not a valid header.", hint="write --header name=value")
        found[name.strip()] = value
    return found or None
