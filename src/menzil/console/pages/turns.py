"""/turns: the next leases over all channels, and who is passed over."""

from __future__ import annotations

from typing import Any

from menzil.console import drawings
from menzil.console.page import Page, Shown
from menzil.console.pages.channels import kind
from menzil.console.parts import Look, reading
from menzil.console.words import many
from menzil.watch import channels as watching

#: Channels that are passed over, on one page: after an operator paused thousands it would weigh megabytes every 2 s.
MOST = 100


@reading("limit")
def turns(look: Look) -> dict[str, Any]:
    """The next fifty."""
    return watching.turns(look.run, look.number("limit", 50, 1, 200))


def _prepare(shown: Shown) -> dict[str, Any]:
    found = shown["turns"]
    ahead = found["turns"] if found else []
    skipped = found["skipped"] if found else []
    return {
        "title": f"{many(len(ahead), 'turn')} ahead, {many(len(skipped), 'channel')} skipped",
        "heading": "Turns",
        "told": f"{many(len(skipped), 'channel')} skipped",
        "picture": drawings.lanes(ahead) if ahead else None,
        "lanes": drawings.lane_classes(ahead),
        "skipped": skipped[:MOST],
        "more": max(len(skipped) - MOST, 0),
        "kind": kind,
    }


PAGE = Page(
    "/turns", "turns.html", {"turns": turns}, _prepare, twin=lambda shown: shown["turns"], live=2, asks=("limit",)
)
