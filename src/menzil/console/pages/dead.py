"""/dead: dead letters by cause, and what was changed just before each began."""

from __future__ import annotations

from typing import Any

from menzil.console import charts
from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.words import count, many, span
from menzil.watch import dead as watching


@reading("endpoint")
def causes(look: Look) -> dict[str, Any]:
    """Every cause, the most frequent first. A cause is redacted for all: it is made of what a stranger wrote."""
    return watching.causes(look.run, endpoint=look.line("endpoint", 200) or None, redactor=look.redact())


def began(one: dict[str, Any]) -> str:
    """What was changed just before, in words."""
    changed = one.get("changed")
    if not changed:
        return ""
    by = f" by {changed['actor']}" if changed["actor"] else ""
    return f"began {span(changed['before_s'])} after {changed['what']} {changed['entity'] or ''}{by}"


def spark(one: dict[str, Any]) -> Any:
    """The last day."""
    return charts.spark(one["spark"], f"Died in the last 24 h: {count(sum(one['spark']))}", "bad")


def _prepare(shown: Shown) -> dict[str, Any]:
    found = shown["causes"]
    told = many(found["dead"], "dead letter") if found else "Dead letters"
    return {
        "title": told,
        "heading": "Dead letters",
        "told": told,
        "every": watching.EVERY,
        "endpoint": shown.query.get("endpoint", "").strip(),
        "began": began,
        "spark": spark,
    }


PAGE = Page("/dead", "dead.html", {"causes": causes}, _prepare, twin=lambda shown: shown["causes"], asks=("endpoint",))
