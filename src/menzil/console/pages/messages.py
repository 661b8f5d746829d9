"""/messages: a search line, and what it finds, newest first."""

from __future__ import annotations

from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.seeing import redactor, visible
from menzil.console.words import count
from menzil.ops import looking
from menzil.watch import messages as watching
from menzil.watch.search import QUALIFIERS, suggestions

LIMIT = 50
NAMES = 500
#: Characters of a search line: a hundred ids have room.
LONGEST = 4_000


@reading("q", "before", "limit")
def messages(look: Look) -> dict[str, Any]:
    """A page of them."""
    limit, line = look.number("limit", LIMIT, 1, 500), look.line("q", LONGEST)
    found = watching.search(look.run, line, limit=limit, before=look.place(), redactor=redactor(look))
    return {**found, "messages": [visible(look, row) for row in found["messages"]]}


@reading()
def names(look: Look) -> list[str]:
    """Names of channels, for suggestions."""
    return [str(row["name"]) for row in look.run(looking.channels(NAMES))]


def _prepare(shown: Shown) -> dict[str, Any]:
    found, line = shown["messages"], shown.query.get("q", "")
    rows = found["messages"] if found else []
    more = "+" if found and found["next_before"] is not None else ""
    return {
        "title": f"{count(len(rows))}{more} messages" + (f" · {line}" if line else ""),
        "heading": "Messages",
        "search": line,
        "longest": LONGEST,
        "told": f"{count(len(rows))}{more} messages",
        "qualifiers": QUALIFIERS,
        "suggested": suggestions(line, shown["names"] or [])[:40] if line and not line.endswith(" ") else [],
        "examples": ["status:pending", "status:failed since:1h", 'error:"timed out"', "status:processing"],
    }


PAGE = Page(
    "/messages",
    "messages.html",
    {"messages": messages, "names": names},
    _prepare,
    twin=lambda shown: shown["messages"],
    asks=("q", "before", "limit"),
)
