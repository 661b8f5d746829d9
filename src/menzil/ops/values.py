"""Values on their way out: refused here, with the class SQL would use, or turned into text PostgreSQL casts.

Text literals with explicit casts in the statement do not depend on the adapters of the caller's connection, and an
array as one literal is several times cheaper than psycopg's list adapter.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Json, Jsonb

from menzil.model.errors import InvalidValueError, MissingValueError, UsageError
from menzil.model.wire import Dumps

# A NUL in JSON text: the escape itself, not an escaped backslash before the letters u0000.
_NUL_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

# What no integer of PostgreSQL holds, and a span that leads out of its calendar from every time that SQL takes.
_BEYOND = 2**63
_MOST_SECONDS = 10_000 * 365 * 86_400


def text(what: str, value: object) -> str:
    """Check a text that must be there."""
    if value is None:
        raise MissingValueError(f"The {what} is missing.")
    if not isinstance(value, str):
        raise InvalidValueError(f"The {what} must be text, not {type(value).__name__}.")
    if "\x00" in value:
        raise InvalidValueError(f"The {what} contains a NUL character, which PostgreSQL cannot store.")
    # Members of a str Enum are text too, but psycopg would send their names.
    return value if type(value) is str else str.__str__(value)


def optional_text(what: str, value: object) -> str | None:
    """Check a text that may be left out."""
    return None if value is None else text(what, value)


def integer(what: str, value: object) -> str:
    """Check a whole number that must be there; its range, if PostgreSQL has such numbers, is for SQL to judge."""
    if value is None:
        raise MissingValueError(f"The {what} is missing.")
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]  # that is the question
    except TypeError:
        sentence = f"The {what} must be a whole number, not {type(value).__name__}."
        raise InvalidValueError(sentence, hint="give an int") from None
    if not -_BEYOND <= number < _BEYOND:
        # PostgreSQL's code, as for a number that only the parameter's type cannot hold.
        raise InvalidValueError(f"The {what} is out of range.", sqlstate="22003", hint="give a smaller number")
    return str(number)


def optional_integer(what: str, value: object) -> str | None:
    """Check a whole number that may be left out."""
    return None if value is None else integer(what, value)


def _seconds(what: str, value: object) -> float:
    if value is None:
        raise MissingValueError(f"The {what} is missing.")
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if not isinstance(value, int | float) or isinstance(value, bool):
        sentence = f"The {what} must be a number of seconds or a timedelta, not {type(value).__name__}."
        raise InvalidValueError(sentence, hint="give an int, a float or a datetime.timedelta")
    if value > _MOST_SECONDS:
        raise InvalidValueError(f"The {what} is longer than 10,000 years.", hint="give a shorter time")
    if not value >= 0:
        raise InvalidValueError(f"The {what} must be zero or more seconds, not {max(value, -_MOST_SECONDS)}.")
    return float(value)


def seconds(what: str, value: object) -> str | None:
    """Check a duration that may be left out."""
    return None if value is None else repr(_seconds(what, value))


def milliseconds(what: str, value: object) -> str:
    """Check a duration that must be there, for the SQL functions that count in milliseconds."""
    return str(math.ceil(_seconds(what, value) * 1000))


def interval(what: str, value: object) -> str | None:
    """Check a duration that may be left out and write it as an interval."""
    return None if value is None else f"{_seconds(what, value):.6f} seconds"


def time(what: str, value: object) -> str | None:
    """Check a point in time and write it so that no session setting can change its meaning."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise InvalidValueError(f"The {what} must be a datetime, not {type(value).__name__}.")
    if value.utcoffset() is None:
        raise InvalidValueError(f"The {what} {value} has no time zone.", hint="give it a time zone")
    return value.isoformat()


def either(first: str, second: str, *values: object) -> None:
    """Refuse two ways of saying the same thing."""
    if all(value is not None for value in values):
        raise UsageError(f"{first} and {second} say the same thing.", hint="give one of them")


def uuid(what: str, value: object) -> str | None:
    """Check a uuid, given as such or as text."""
    if value is None:
        return None
    try:
        return str(value if isinstance(value, UUID) else UUID(str(value)))
    except ValueError:
        hint = "write 32 hexadecimal digits, such as 6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11"
        raise InvalidValueError(f"The {what} is not a UUID.", hint=hint) from None


def content(what: str, value: object) -> bytes | None:
    """Check a binary value."""
    if value is None:
        return None
    if not isinstance(value, bytes | bytearray | memoryview):
        raise InvalidValueError(f"The {what} must be bytes, not {type(value).__name__}.")
    return bytes(value)


def payload(what: str, value: Any, dumps: Dumps) -> str:
    """Write a JSON value that must be there. None is a forgotten value; a wanted JSON null says so."""
    if value is None:
        hint = "to send a JSON null, give psycopg.types.json.Jsonb(None)"
        raise MissingValueError(f"The {what} is missing.", hint=hint)
    return _json(what, value.obj if isinstance(value, Json | Jsonb) else value, dumps)


def optional_json(what: str, value: Any, dumps: Dumps) -> str | None:
    """Write a JSON value that may be left out."""
    return None if value is None else payload(what, value, dumps)


def _json(what: str, value: Any, dumps: Dumps) -> str:
    try:
        written = dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        hint = "JSON knows dict, list, str, int, float, bool and None; Menzil(dumps=…) may know more"
        raise InvalidValueError(f"The {what} cannot be written as JSON: {error}.", hint=hint) from error
    if isinstance(written, bytes):
        written = written.decode()
    elif not isinstance(written, str):
        hint = "let Menzil(dumps=…) return a str or bytes"
        raise InvalidValueError(f"The {what} was written as {type(written).__name__}, not as text.", hint=hint)
    if "\\u0000" in written and _NUL_ESCAPE.search(written):
        raise InvalidValueError(f"The {what} contains a NUL character, which PostgreSQL cannot store.")
    return written


def array(values: Iterable[str | None]) -> str:
    """Write texts as one array literal."""
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: str | None) -> str:
    if value is None:
        return "NULL"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def numbers(values: Iterable[str | None]) -> str:
    """Write numbers, which need no quotes, as one array literal."""
    return "{" + ",".join(["NULL" if value is None else value for value in values]) + "}"


def integers(values: Iterable[int]) -> str:
    """Write whole numbers, none of them missing, as one array literal."""
    return "{" + ",".join(map(str, values)) + "}"


def booleans(values: Sequence[bool | None]) -> str | None:
    """Write yes, no and unknown as one array literal, or nothing at all when none of them is known."""
    if all(value is None for value in values):
        return None
    return numbers(None if value is None else "t" if value else "f" for value in values)


def sparse_array(values: Sequence[str | None]) -> str | None:
    """Write texts as one array literal, or nothing at all when none of them is there."""
    return None if all(value is None for value in values) else array(values)
