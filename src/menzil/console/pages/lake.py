"""/lake: how far readers of the history are behind, which months are where, and what the pipeline did."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.words import many, span
from menzil.model.errors import UsageError
from menzil.watch import lake as watching


@reading("limit")
def lake(look: Look) -> dict[str, Any]:
    """All of it, as the database knows it."""
    found = watching.lake(look.run, limit=look.number("limit", 50, 1, 500))
    by = look.redact()
    return {
        **found,
        "runs": [{**one, "error": by.text(one["error"]) if one["error"] else None} for one in found["runs"]],
    }


@reading()
def months(look: Look) -> list[dict[str, Any]]:
    """Each month: {"month", "database", "in_lake", "rows", "bytes", "files", "last_run"}.

    `database` is open, closed, or None for a month that was dropped; `in_lake` is None where no lake is known.
    """
    held = {one["month"].strftime("%Y-%m"): "open" if one["open"] else "closed" for one in watching.months(look.run)}
    lie = {} if look.lake is None else {one["month"]: one for one in _in_lake(look.lake)}
    unknown = {"rows": None, "bytes": None, "files": None, "last_run": None}
    return [
        {
            "month": month,
            "database": held.get(month),
            "in_lake": None if look.lake is None else month in lie,
            **{name: lie.get(month, unknown)[name] for name in unknown},
        }
        for month in sorted({*held, *lie}, reverse=True)
    ]


def _in_lake(lake: str) -> list[dict[str, Any]]:
    from menzil.console import in_lake

    try:
        return in_lake.months(lake)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The lake could not be read: {error}.", hint="run `menzil pipeline export --verify --lake PATH`"
        ) from error


def _prepare(shown: Shown) -> dict[str, Any]:
    found = shown["lake"]
    readers = found["consumers"] if found else []
    behind = max((one["lag_s"] for one in readers), default=0.0)
    told = f"lake {span(behind)} behind" if behind else many(len(readers), "reader")
    return {"title": told, "heading": "Lake", "told": told, "this_month": f"{datetime.now(UTC):%Y-%m}"}


def _twin(shown: Shown) -> Any:
    return {**(shown["lake"] or {}), "months": shown["months"]}


PAGE = Page("/lake", "lake.html", {"lake": lake, "months": months}, _prepare, twin=_twin, asks=("limit",))
