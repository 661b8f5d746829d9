"""Whether one JSON value contains another, as `payload @> filter` does for jsonb. Python alone, no Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

#: The way from the top of a document to one of its values, through objects.
Path = tuple[str, ...]


class TooDeepError(ValueError):
    """JSON that is nested deeper than Python follows; PostgreSQL goes further."""


def read(text: str) -> Any:
    """Parse JSON as jsonb does: numbers keep every digit, the last of equal keys wins. ValueError if it is not JSON."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except RecursionError:
        raise TooDeepError from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError) or "integer string conversion" not in str(error):
            raise
        # Python reads no integer of more than 4,300 digits unless asked, PostgreSQL does.
        return json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def contains(whole: Any, part: Any) -> bool:
    """Objects have all members of the part, arrays all its elements in any order and number, scalars are equal."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and contains(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(contains(item, wanted) for item in whole) for wanted in part)
    # To Python True is 1, to JSON it is not. 1 and 1.0 are one number to both.
    return bool(scalar(whole) == scalar(part))


def scalar(value: Any) -> Any:
    """A scalar as a key: keys are equal exactly when jsonb calls the scalars equal. Containers equal nothing."""
    match value:
        case bool():
            return "true" if value else "false", None
        case dict() | list():
            return None
        case _:
            return "scalar", value


def leaves(wanted: dict[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The scalars of a filter that are reached through objects alone: a payload must have each at just that place."""
    for key, value in wanted.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        elif not isinstance(value, list):
            yield (*path, key), scalar(value)


def at(value: Any, path: Path) -> Any:
    """What stands there, as scalar() writes it; None when there is no scalar."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return scalar(value)
