"""JSON exact to the digit: a number never passes through a float, and what was read comes out as it was written.

A number with a point or an exponent, or with more digits than Python converts, is a Decimal; other numbers are ints.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

#: Digits of the longest number that is read as an int; Python refuses to convert ones of more than 4,300.
MOST_DIGITS = 4_000

_quoted = json.JSONEncoder(ensure_ascii=False).encode


def _int(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= MOST_DIGITS else Decimal(digits)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


# Without the last one Python reads NaN and Infinity, which JSON and the database do not have.
_decoder = json.JSONDecoder(parse_float=Decimal, parse_int=_int, parse_constant=_no_constant)


def loads(text: str) -> Any:
    """Parse JSON. What is nested too deeply for Python raises RecursionError."""
    return _decoder.decode(text)


def dumps(value: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> str:
    """Write JSON at any depth; `default` turns a value of another type into one that JSON has."""
    return "".join(_written(value, indent, default))


def plain(value: Any) -> Any:
    """A value that JSON has no form for, as one that it has: for `default` of dumps()."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form here")


def _written(value: Any, indent: int | None, default: Callable[[Any], Any] | None) -> Iterator[str]:
    # Without recursion: each open bracket is what is left of its items, and the text that closes it.
    stack: list[tuple[Iterator[tuple[str, Any]], str]] = []
    name, one, first = "", value, True
    while True:
        yield name
        opened = _opened(one)
        if opened is not None:
            yield opened[1]
            stack.append((opened[0], opened[2]))
            first = True
        else:
            changed = one if isinstance(one, Decimal) or default is None or _is_json(one) else default(one)
            if changed is not one:
                name, one = "", changed
                continue
            yield _scalar(one)
        while stack:
            items, closing = stack[-1]
            found = next(items, None)
            if found is not None:
                break
            stack.pop()
            yield closing if first or indent is None else "\n" + " " * indent * len(stack) + closing
            first = False
        else:
            return
        if not first:
            yield ", " if indent is None else ","
        if indent is not None:
            yield "\n" + " " * indent * len(stack)
        name, one = found
        first = False


def _opened(value: Any) -> tuple[Iterator[tuple[str, Any]], str, str] | None:
    if isinstance(value, Mapping):
        return ((f"{_quoted(str(key))}: ", one) for key, one in value.items()), "{", "}"
    if isinstance(value, list | tuple):
        return (("", one) for one in value), "[", "]"
    return None


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _scalar(value: Any) -> str:
    if isinstance(value, Decimal) and value.is_finite():
        return format(value, "f") if -30 < value.adjusted() < 400 else str(value)
    return _quoted(value)
