"""/endpoints/{name}: its circuit over time above its tries, its config without secrets, and what retries mean."""

from __future__ import annotations

from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from menzil.console.circuits import KINDS, classes, timeline
from menzil.console.page import Page, Shown
from menzil.console.pages.endpoints import state
from menzil.console.parts import Look, NotThereError, reading
from menzil.console.seeing import filters
from menzil.console.words import day_clock
from menzil.ops import looking
from menzil.watch import endpoints as watching

WINDOWS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "24h": timedelta(hours=24)}


def _demand(look: Look) -> str:
    name = look.path["name"]
    if "\x00" not in name and look.run(looking.endpoint(name)) is not None:
        return name
    near = get_close_matches(name, [str(row["name"]) for row in look.run(looking.endpoints(10_000))], 1)
    raise NotThereError(f"There is no endpoint named {name!r}.", hint=f"Did you mean {near[0]}?" if near else None)


@reading()
def endpoint(look: Look) -> dict[str, Any]:
    """How it fares and how it is set up; secrets are marks already."""
    found = watching.endpoint(look.run, _demand(look))
    by = look.redact()
    happened = [{**one, "new_value": None, "metadata": None} for one in found["happened"]]
    signing = (found["config"] or {}).get("signing") or {}
    rotating = len(signing.get("secrets") or []) > 1
    return {
        **found,
        "rotating": rotating,
        "config": by.value(found["config"]),
        "happened": happened,
        "subscriptions": filters(look, found["subscriptions"]),
    }


@reading("window")
def circuit(look: Look) -> dict[str, Any]:
    """How its circuit went."""
    chosen = look.text("window", "6h")
    found = watching.circuit(look.run, _demand(look), since=WINDOWS.get(chosen, WINDOWS["6h"]))
    marks = [{name: one[name] for name in ("id", "at", "what", "actor", "via")} for one in found["marks"]]
    return {**found, "marks": marks}


def _prepare(shown: Shown) -> dict[str, Any]:
    found, drawn, name = shown["endpoint"], shown["circuit"], shown.path["name"]
    word, kind = state(found) if found else ("", "idle")
    chosen = shown.query.get("window", "6h")
    called = classes(found["protocol"] if found else None)
    return {
        "title": f"{word} · {name}" if word else name,
        "heading": name,
        "told": f"{name}: {word}",
        "word": word,
        "kind": kind,
        "windows": list(WINDOWS),
        "chosen": chosen if chosen in WINDOWS else "6h",
        "picture": timeline(drawn, called) if drawn else None,
        "rows": [
            [day_clock(row["at"]), *(row[one] for one in called)]
            for row in drawn["tries"]
            if any(row[one] for one in called)
        ]
        if drawn
        else [],
        "classes": {word: KINDS[name] for name, word in called.items()},
    }


def _twin(shown: Shown) -> Any:
    return {**(shown["endpoint"] or {}), "circuit": shown["circuit"]}


PAGE = Page(
    "/endpoints/{name}", "endpoint.html", {"endpoint": endpoint, "circuit": circuit}, _prepare, twin=_twin,
    nav="/endpoints", asks=("window",),
    choices={"window": tuple(WINDOWS)},
)  # fmt: skip
