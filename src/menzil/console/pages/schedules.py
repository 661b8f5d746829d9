"""/schedules: cron in words, the next slots in their zone, and what became of the last one."""

from __future__ import annotations

from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.seeing import redactor, visible
from menzil.console.words import many
from menzil.watch import schedules as watching


@reading("limit", "after")
def schedules(look: Look) -> dict[str, Any]:
    """A page of them, by name."""
    found = watching.listed(
        look.run,
        limit=look.number("limit", 50, 1, 500),
        after=look.text("after"),
        bodies=look.sees != "hide",
        redactor=redactor(look) or look.redact(),
    )
    return {**found, "schedules": [visible(look, one) for one in found["schedules"]]}


def _prepare(shown: Shown) -> dict[str, Any]:
    rows = (shown["schedules"] or {}).get("schedules", [])
    late = sum(1 for one in rows if one["late"])
    told = f"{many(late, 'schedule')} late" if late else many(len(rows), "schedule")
    return {"title": told, "heading": "Schedules", "told": told}


PAGE = Page(
    "/schedules",
    "schedules.html",
    {"schedules": schedules},
    _prepare,
    twin=lambda shown: shown["schedules"],
    asks=("limit", "after"),
)
