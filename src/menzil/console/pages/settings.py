"""/settings: what the whole queue goes by, with ranges."""

from __future__ import annotations

from typing import Any

from menzil.console.page import Page, Shown, only
from menzil.console.parts import Look, reading
from menzil.console.words import many
from menzil.watch import settings as watching


@reading()
def settings(look: Look) -> list[dict[str, Any]]:
    """All of them."""
    return watching.listed(look.run)


def _prepare(shown: Shown) -> dict[str, Any]:
    changed = sum(1 for one in shown["settings"] or [] if one["changed"])
    told = f"{many(changed, 'setting')} changed"
    return {"title": told, "heading": "Settings", "told": told}


PAGE = Page("/settings", "settings.html", {"settings": settings}, _prepare, twin=only("settings"), live=0)
