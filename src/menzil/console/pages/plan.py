"""/plans/{id}: the estimate of a draft, or how far a plan is and what became of its messages."""

from __future__ import annotations

from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.pages.plans import achieved, stale
from menzil.console.parts import Look, NotThereError, reading
from menzil.console.seeing import redactor
from menzil.console.typed import digits
from menzil.console.words import count
from menzil.model.errors import UnknownNameError
from menzil.watch import plans as watching

#: The order in which outcomes are told, and the colour of each.
OUTCOMES = {
    "completed": "good", "in_flight": "busy", "retrying": "warn", "waiting": "idle", "dead": "bad", "expired": "warn",
    "cancelled": "idle", "taken_back": "idle", "unknown": "idle",
}  # fmt: skip


@reading()
def plan(look: Look) -> dict[str, Any]:
    """The plan, whom it reaches, and what became of it."""
    given = look.path["id"]
    try:
        found = watching.one(look.run, int(given) if given.isascii() and given.isdecimal() and len(given) < 19 else 0)
    except UnknownNameError:
        hint = "Drafts that were not run are deleted after a day."
        raise NotThereError(f"There is no plan {given!r}.", hint=hint) from None
    return watching.with_cause(look.run, found, redactor(look) or look.redact())


def _prepare(shown: Shown) -> dict[str, Any]:
    found, number = shown["plan"], shown.path["id"]
    told = f"{found['status']}, {count(found['done'])} of {count(found['counted'])}" if found else f"Plan {number}"
    outcome = found["outcome"] if found else {}
    return {
        "title": f"{told} · plan {number}",
        "heading": f"Plan {number}",
        "told": told,
        "rate_achieved": achieved(found) if found else None,
        "stale": bool(found) and stale(found),
        "again": _again(found) if found else {},
        "waits_for": sorted({one["waits_for"] for one in found["targets"] if one["waits_for"]}) if found else [],
        "outcomes": [(name, outcome[name], kind) for name, kind in OUTCOMES.items() if outcome.get(name)],
    }


def _again(found: dict[str, Any]) -> dict[str, str]:
    """What the form of the same plan is filled with; nothing where ids were chosen by hand: they may be many."""
    asked = dict(found["filter"])
    if "ids" in asked:
        return {}
    place = "endpoint" if found["kind"] == "redrive" else "channel"
    words = {place if name == "channel" else name: value for name, value in asked.items()}
    words |= {"rate": found["rate"] and digits(found["rate"]), "note": found["note"]}
    return {name: "1" if value is True else str(value) for name, value in words.items() if value}


PAGE = Page(
    "/plans/{id}", "plan.html", {"plan": plan}, _prepare, twin=lambda shown: shown["plan"], nav="/plans", live=2
)
