"""/lake: how far readers of the history are behind, which months are where, and what the pipeline did."""

from __future__ import annotations

from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.parts import Look
from menzil.console.words import many, span
from menzil.watch import lake as watching


def lake(look: Look) -> dict[str, Any]:
    """All of it, as the database knows it."""
    found = watching.lake(look.run, limit=look.number("limit", 50, 1, 500))
    by = look.redact()
    return {
        **found,
        "runs": [{**one, "error": by.text(one["error"]) if one["error"] else None} for one in found["runs"]],
    }


def _prepare(shown: Shown) -> dict[str, Any]:
    found = shown["lake"]
    readers = found["consumers"] if found else []
    behind = max((one["lag_s"] for one in readers), default=0.0)
    told = f"lake {span(behind)} behind" if behind else many(len(readers), "reader")
    return {"title": told, "heading": "Lake", "told": told}


PAGE = Page("/lake", "lake.html", {"lake": lake}, _prepare, twin=lambda shown: shown["lake"])
