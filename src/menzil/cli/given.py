"""What people type: JSON, files, headers, durations and times, read or refused with one sentence and one hint."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from menzil.model.errors import UsageError
from menzil.model.times import seconds, when
from menzil.model.wire import json_dumps

__all__ = [
    "Written",
    "dumps",
    "headers",
    "json_object",
    "json_value",
    "parse",
    "raw",
    "seconds",
    "text",
    "when",
    "written",
]


@dataclass(frozen=True, slots=True)
class Written:
    """JSON as the user wrote it: it reaches the database with every digit, not by way of Python's floats."""

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
    found = parse(given, what, hint=hint, parse_int=str)  # Python reads no number of more than 4,300 digits
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        sentence = f"The {what} has half a character, \\u{ord(error.object[error.start]):04x}."
        raise UsageError(sentence, hint="a surrogate needs its other half, or leave both out") from None
    return Written(given)


def parse(given: str, what: str, *, hint: str | None = None, parse_int: Callable[[str], Any] = int) -> Any:
    """Read JSON."""
    try:
        return json.loads(given, parse_constant=_no_constant, parse_int=parse_int)
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


def headers(given: Iterable[str]) -> dict[str, str] | None:
    """Read name=value pairs."""
    found = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{pair!r} is not a valid header.", hint="write --header name=value")
        found[name.strip()] = value
    return found or None
