"""/bridges: where records come from, where they go, how far each bridge is, and what keeps it."""

from __future__ import annotations

from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.words import many
from menzil.watch import bridges as watching


@reading("limit", "after")
def bridges(look: Look) -> dict[str, Any]:
    """A page of them, by name."""
    return watching.listed(look.run, limit=look.number("limit", 50, 1, 500), after=look.text("after"))


def _prepare(shown: Shown) -> dict[str, Any]:
    rows = (shown["bridges"] or {}).get("bridges", [])
    still = sum(1 for one in rows if one["state"] in ("idle", "failing"))
    told = f"{many(still, 'bridge')} at a standstill" if still else many(len(rows), "bridge")
    return {"title": told, "heading": "Bridges", "told": told}


PAGE = Page(
    "/bridges",
    "bridges.html",
    {"bridges": bridges},
    _prepare,
    twin=lambda shown: shown["bridges"],
    asks=("limit", "after"),
)
