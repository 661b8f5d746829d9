"""/endpoints: how each endpoint fares."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.words import many
from menzil.watch import endpoints as watching


@reading("limit", "after")
def endpoints(look: Look) -> dict[str, Any]:
    """A page of them, by name."""
    return watching.endpoints(look.run, limit=look.number("limit", 50, 1, 200), after=look.text("after"))


def state(row: dict[str, Any]) -> tuple[str, str]:
    """The word for how it stands, and its colour."""
    if not row["enabled"]:
        return "disabled", "bad"
    if row["circuit_state"] == "open":
        return "circuit open", "bad"
    if row["paused"]:
        return "paused", "warn"
    if row["circuit_state"] == "half_open":
        return "probing", "warn"
    if row["waits_until"] is not None and row["waits_until"] > datetime.now(UTC):
        return "resting", "warn"
    if row["in_flight"]:
        return "delivering", "good"
    # Whether a worker is there to deliver is not asked for each endpoint; the page of its channel says it.
    return ("waiting", "idle") if row["pending_messages"] else ("ready", "good")


def _prepare(shown: Shown) -> dict[str, Any]:
    rows = (shown["endpoints"] or {}).get("endpoints", [])
    held = sum(1 for row in rows if state(row)[1] in ("warn", "bad"))
    told = f"{many(held, 'endpoint')} not delivering" if held else many(len(rows), "endpoint")
    return {"title": told, "heading": "Endpoints", "told": told, "state": state}


PAGE = Page(
    "/endpoints",
    "endpoints.html",
    {"endpoints": endpoints},
    _prepare,
    twin=lambda shown: shown["endpoints"],
    asks=("limit", "after"),
)
