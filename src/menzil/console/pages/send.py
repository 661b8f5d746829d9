"""/send: to which channel or event; the form that follows shows it in SQL, Python, a shell and curl."""

from __future__ import annotations

from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.ops import looking

#: Names that are offered.
MOST = 200


@reading()
def targets(look: Look) -> dict[str, Any]:
    """Channels, endpoints and event types, by name."""
    rows = look.run(looking.channels(MOST))
    types = look.run(looking.event_types(MOST))
    names = ("name", "is_endpoint", "enabled", "paused", "released")
    return {
        "channels": [{name: row[name] for name in names} for row in rows],
        "event_types": [{"name": row["name"], "has_schema": row["schema"] is not None} for row in types],
    }


def _prepare(shown: Shown) -> dict[str, Any]:
    del shown
    return {"title": "Send a message", "heading": "Send"}


PAGE = Page("/send", "send.html", {"targets": targets}, _prepare, twin=lambda shown: shown["targets"], live=0)
