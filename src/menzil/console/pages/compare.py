"""/compare: two messages, two tries of one, or a message before and after redaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from menzil.console.documents import dumps
from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.seeing import redactor
from menzil.console.words import exact
from menzil.model.errors import PermissionDeniedError, UsageError
from menzil.watch import messages as watching

#: Letters of a value in a cell.
LONGEST = 400


@reading("a", "b", "message", "redaction")
def comparison(look: Look) -> dict[str, Any] | None:
    """What differs; None while nothing is chosen."""
    if look.sees == "hide":
        raise PermissionDeniedError("Your role does not see payloads.", hint="Ask for the role reader.")
    a, b, message = (_number(look, name) for name in ("a", "b", "message"))
    if look.text("redaction"):
        number = _number(look, "redaction")
        if look.sees != "show" or number is None:
            raise PermissionDeniedError(
                "This console shows no payload as it is, so there is nothing to compare.", hint=""
            )
        return watching.compare_redaction(look.run, number, look.redact())
    if a is None or b is None:
        return None
    if message is not None:
        return watching.compare_tries(look.run, message, a, b, redactor=redactor(look))
    return watching.compare(look.run, a, b, redactor=redactor(look))


def _number(look: Look, name: str) -> int | None:
    given = look.text(name)
    if not given:
        return None
    if not given.isascii() or not given.isdecimal() or int(given[:20]) >= 2**63:
        raise UsageError(f"{given!r} is not a number.", hint="Give the ids of two messages.")
    return int(given)


def _prepare(shown: Shown) -> dict[str, Any]:
    found = shown["comparison"]
    a, b, message, hidden = (shown.query.get(name, "").strip() for name in ("a", "b", "message", "redaction"))
    what = f"Tries {a} and {b} of message {message}" if message else f"Messages {a} and {b}" if a and b else "Compare"
    what = f"Message {hidden} before and after redaction" if hidden else what
    differences = 0
    if found:
        differences = sum(not row["equal"] for row in found["fields"])
        differences += sum(one["differences"] for one in found["body"].values())
    return {
        "title": f"{differences:,} differences · {what}" if found else what,
        "heading": what,
        "differences": differences,
        "a": a,
        "b": b,
        "message": message,
        "sides": ("before", "after") if hidden else (a, b),
        "cell": _cell,
    }


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return exact(value)
    text = str(value) if isinstance(value, str | UUID) else "" if value is None else dumps(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


PAGE = Page(
    "/compare",
    "compare.html",
    {"comparison": comparison},
    _prepare,
    twin=lambda shown: shown["comparison"],
    role="reader",
    nav="/messages",
    live=0,
    asks=("a", "b", "message", "redaction"),
)
