"""/plans: many messages at once, each with its count, its pace and how far it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.words import many
from menzil.watch import plans as watching

#: For so long a draft may be run.
FRESH = timedelta(minutes=10)


@reading("before", "limit")
def plans(look: Look) -> dict[str, Any]:
    """A page of them, newest first."""
    return watching.listing(look.run, limit=look.number("limit", 50, 1, 500), before=look.place())


def _prepare(shown: Shown) -> dict[str, Any]:
    rows = (shown["plans"] or {}).get("plans", [])
    running = sum(1 for one in rows if one["status"] == "running")
    told = f"{many(running, 'plan')} running" if running else many(len(rows), "plan")
    return {"title": told, "heading": "Plans", "told": told, "achieved": achieved, "stale": stale}


def achieved(one: dict[str, Any]) -> float | None:
    """Messages per second since it was started; with a pace, without those that it made for later."""
    if one["started_at"] is None or not one["done"]:
        return None
    end = one["ended_at"] or datetime.now(UTC)
    seconds, ahead = (end - one["started_at"]).total_seconds(), 0.0
    if one["rate"] and one["last_due_at"] is not None:
        ahead = max((one["last_due_at"] - end).total_seconds(), 0.0) * one["rate"]
    return float(max(one["done"] - ahead, 0.0) / max(seconds, 0.001))


def stale(one: dict[str, Any]) -> bool:
    """Whether its count is too old to run it."""
    return bool(one["status"] == "draft" and datetime.now(UTC) - one["created_at"] > FRESH)


def _twin(shown: Shown) -> Any:
    found = shown["plans"] or {}
    return {name: value for name, value in found.items() if name != "as_of"}


PAGE = Page("/plans", "plans.html", {"plans": plans}, _prepare, twin=_twin, live=3, asks=("before", "limit"))
