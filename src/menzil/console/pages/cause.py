"""/dead/{hash}: one cause and its letters."""

from __future__ import annotations

import re
from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.pages.dead import began, spark
from menzil.console.parts import Look, NotThereError, reading
from menzil.console.seeing import redactor, visible
from menzil.console.words import count, many
from menzil.ops.looking import SCAN
from menzil.watch import dead as watching


@reading("endpoint", "before")
def cause(look: Look) -> dict[str, Any]:
    """The cause and a page of its letters."""
    digits = look.path["hash"]
    before = look.place()
    found = None
    if re.fullmatch("[0-9a-f]{12}", digits):
        found = watching.cause(
            look.run,
            digits,
            endpoint=look.line("endpoint", 200) or None,
            before=before,
            redactor=redactor(look) or look.redact(),
        )
    if found is None or (not found["failed_count"] and not found["letters"]):
        raise NotThereError("No dead letter has this cause.", hint="All of them may have been cleaned up.")
    return {**found, "letters": [visible(look, one) for one in found["letters"]]}


def _prepare(shown: Shown) -> dict[str, Any]:
    found = shown["cause"]
    told = many(found["failed_count"], "dead letter") if found else "Dead letters"
    if found and found["at_least"]:
        told = f"{count(found['failed_count'])} or more dead letters"
    return {
        "title": told,
        "heading": "Dead letters of one cause",
        "told": told,
        "every": watching.EVERY,
        "scan": SCAN,
        "endpoint": shown.query.get("endpoint", "").strip(),
        "began": began(found) if found else "",
        "spark": spark(found) if found and "spark" in found else "",
    }


PAGE = Page(
    "/dead/{hash}", "cause.html", {"cause": cause}, _prepare, twin=lambda shown: shown["cause"], nav="/dead",
    asks=("before", "endpoint"),
)  # fmt: skip
