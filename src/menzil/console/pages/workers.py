"""/workers: who is at work, what each has leased, and which channels no worker serves."""

from __future__ import annotations

from typing import Any

from menzil.console.page import Page, Shown, only
from menzil.console.parts import Look, reading
from menzil.console.words import many
from menzil.watch import workers as watching
from menzil.watch.channels import ENDPOINTS

#: Channels that no worker serves, on one page: an operator who stopped all workers may have thousands.
MOST = 100


@reading()
def workers(look: Look) -> list[dict[str, Any]]:
    """Every worker the database has heard of."""
    return watching.workers(look.run)


@reading()
def leases(look: Look) -> dict[str, Any]:
    """What each worker has leased."""
    return watching.leases(look.run)


@reading()
def unserved(look: Look) -> dict[str, Any]:
    """Channels with waiting messages that no live worker takes, the oldest first; of many the first MOST."""
    found = sorted(watching.unserved(look.run), key=lambda row: (row["oldest_at"] is None, row["oldest_at"] or 0))
    return {"channels": found[:MOST], "more": max(len(found) - MOST, 0)}


def _prepare(shown: Shown) -> dict[str, Any]:
    alive = sum(1 for one in shown["workers"] or [] if one["status"] == "alive")
    lost = sum(1 for one in shown["workers"] or [] if one["status"] == "lost")
    told = f"{many(alive, 'worker')} alive" + (f", {lost} lost" if lost else "")
    return {"title": told, "heading": "Workers", "told": told, "endpoints": ENDPOINTS}


PAGE = Page(
    "/workers",
    "workers.html",
    {"workers": workers, "leases": leases, "unserved": unserved},
    _prepare,
    twin=only("workers"),
)
