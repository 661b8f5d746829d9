"""What a person types into a form: whole numbers, times and JSON, read or refused with one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from shlex import quote
from typing import Any

from menzil.model import exact
from menzil.model.errors import InvalidValueError
from menzil.ops import seat
from menzil.ops.op import Op

#: The word for "no value": an empty field of a link is left out of it.
NONE = "none"


def whole(label: str, text: str, least: int = 0) -> int:
    """A whole number."""
    if not text.isascii() or not text.isdecimal() or len(text) > 18 or int(text) < least:
        raise InvalidValueError(f"{label} must be a whole number of at least {least}, not {text!r}.")
    return int(text)


def perhaps(label: str, text: str, least: int = 0) -> int | None:
    """A whole number, or the word none."""
    return None if text.lower() in ("", NONE) else whole(label, text, least)


def positive(label: str, text: str) -> float | None:
    """A number above 0; nothing where the field is empty."""
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e12:
        raise InvalidValueError(f"{label} must be a number above 0, not {text!r}.")
    return number


def digits(value: float) -> str:
    """A number with all of its digits and without an exponent, which durations on a command line do not have."""
    told = f"{Decimal(repr(value)):f}"
    return told.rstrip("0").rstrip(".") if "." in told else told


def document(label: str, text: str) -> Any:
    """JSON, exact to the digit."""
    try:
        found = exact.loads(text)
        exact.dumps(found).encode()
    except UnicodeEncodeError as error:
        sentence = f"{label} has half a character, \\u{ord(error.object[error.start]):04x}."
        raise InvalidValueError(sentence, hint="a surrogate needs its other half, or leave both out") from None
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"{label} is not JSON: {error}.") from None
    return found


def mapping(label: str, text: str) -> dict[str, Any]:
    """A JSON object."""
    found = document(label, text)
    if not isinstance(found, Mapping):
        raise InvalidValueError(f"{label} must be a JSON object.")
    return dict(found)


def line(words: str, *arguments: str, options: str = "") -> str:
    """A command line. An argument that begins with a hyphen would be read as an option: two hyphens go before it."""
    told = " ".join(map(quote, arguments))
    if any(argument.startswith("-") for argument in arguments):
        return f"menzil {words}{options} -- {told}"
    return f"menzil {words} {told}{options}"


def psql(*ops: Op[Any]) -> str:
    """The command line for what has no command of its own."""
    return "\n".join(f'psql "$MENZIL_DSN" -c {quote(seat.shown(op))}' for op in ops)
