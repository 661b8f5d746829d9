"""/health: what the doctor finds, with what repairs it. Each look is a part, and has a transaction of its own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.parts import Look, Part, reading
from menzil.console.words import many
from menzil.watch.doctor import LOOKS
from menzil.watch.finding import Finding
from menzil.watch.finding import Look as Taken

_ORDER = {"critical": 0, "warning": 1, "unknown": 2, "ok": 3}


def _part(check: str, taken: Taken) -> Part:
    @reading()
    def part(look: Look) -> list[dict[str, Any]]:
        return [asdict(one) for one in taken(look.run) or [Finding(check, "ok", "Nothing to fix.")]]

    return part


def findings(shown: Shown) -> list[dict[str, Any]]:
    """All of them, in order; a look that was cut is a finding, too."""
    found = []
    for check, answer in shown.answers.items():
        if answer.trouble is not None:
            sentence = f"Could not look: {answer.trouble.sentence}"
            found.append(asdict(Finding(check, "unknown", sentence, answer.trouble.hint or "menzil doctor")))
        else:
            found += answer.value
    return found


def _prepare(shown: Shown) -> dict[str, Any]:
    found = findings(shown)
    wrong = [one for one in found if one["level"] in ("critical", "warning")]
    unknown = [one for one in found if one["level"] == "unknown"]
    told = [f"{many(len(wrong), 'finding')} to fix"] if wrong else []
    told += [f"{many(len(unknown), 'check')} without an answer"] if unknown else []
    title = ", ".join(told) or "All is well"
    return {
        "title": title,
        "heading": "Health",
        "told": title,
        "findings": sorted(found, key=lambda one: _ORDER[one["level"]]),
        "well": not told,
    }


def _twin(shown: Shown) -> Any:
    found = findings(shown)
    return {"ok": all(one["level"] == "ok" for one in found), "findings": found}


PAGE = Page(
    "/health",
    "health.html",
    {check: _part(check, look) for check, look in LOOKS.items()},
    _prepare,
    twin=_twin,
    live=10,
)
