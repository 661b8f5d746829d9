"""/audit: who did what, when, via what, and what it changed."""

from __future__ import annotations

from typing import Any

from menzil.console.documents import dumps
from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.words import count
from menzil.watch import audit as watching

FILTERS = ("what", "entity", "actor", "via")


@reading(*FILTERS, "before", "limit")
def audit(look: Look) -> dict[str, Any]:
    """A page of the event log."""
    asked = {name: look.line(name, 200) or None for name in FILTERS}
    # Always redacted: what an act changed is told to all who may look.
    return watching.audit(
        look.run, limit=look.number("limit", 50, 1, 500), before=look.place(), redactor=look.redact(), **asked
    )


def _prepare(shown: Shown) -> dict[str, Any]:
    found = shown["audit"]
    rows = found["events"] if found else []
    return {
        "title": f"{count(len(rows))} acts",
        "heading": "Audit",
        "told": f"{count(len(rows))} acts",
        "asked": {name: shown.query.get(name, "") for name in FILTERS},
        "text": _text,
        "places": {"channel": "/channels/", "endpoint": "/endpoints/", "message": "/messages/", "plan": "/plans/"},
    }


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else "none" if value is None else dumps(value)
    return text if len(text) <= 200 else text[:199] + "…"


PAGE = Page(
    "/audit",
    "audit.html",
    {"audit": audit},
    _prepare,
    twin=lambda shown: shown["audit"],
    live=5,
    asks=("before", "limit", *FILTERS),
)
