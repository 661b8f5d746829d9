"""/events: event types with their schemas, who gets them, and which subscriptions would match a payload."""

from __future__ import annotations

from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.seeing import filters
from menzil.console.typed import document
from menzil.console.words import many
from menzil.watch import events as watching


@reading("limit", "after")
def events(look: Look) -> dict[str, Any]:
    """A page of types, by name."""
    found = watching.listed(look.run, limit=look.number("limit", 50, 1, 200), after=look.text("after"))
    types = [{**one, "subscriptions": filters(look, one["subscriptions"])} for one in found["event_types"]]
    return {**found, "event_types": types}


@reading("type", "payload")
def tested(look: Look) -> dict[str, Any] | None:
    """What the tester says; None where nothing was asked."""
    kind, payload = look.line("type", 200), look.line("payload", 20_000)
    if not kind or not payload:
        return None
    found = watching.tested(look.run, kind, document("The payload", payload))
    return {**found, "subscriptions": filters(look, found["subscriptions"])}


def _prepare(shown: Shown) -> dict[str, Any]:
    found = shown["events"]
    told = many(len(found["event_types"]), "event type") if found else "Events"
    return {
        "title": told,
        "heading": "Events",
        "told": told,
        "kind": shown.query.get("type", ""),
        "payload": shown.query.get("payload", "") or '{"order": 1}',
    }


def _twin(shown: Shown) -> Any:
    return {**(shown["events"] or {}), "tested": shown["tested"]}


PAGE = Page(
    "/events",
    "events.html",
    {"events": events, "tested": tested},
    _prepare,
    twin=_twin,
    live=0,
    asks=("limit", "after", "type", "payload"),
)
