"""Settings with their ranges; those that were changed come with the value they had."""

from __future__ import annotations

from typing import Any

from menzil.ops import looking
from menzil.watch.finding import Run


def listed(run: Run) -> list[dict[str, Any]]:
    """Every setting with {"changed", "range"}."""
    return [
        {**row, "changed": row["value"] != row["default_value"], "range": span(row)} for row in run(looking.settings())
    ]


def one(run: Run, name: str) -> dict[str, Any] | None:
    """One of them."""
    return next((row for row in listed(run) if row["name"] == name), None)


def span(row: dict[str, Any]) -> str:
    """What it may be, in words."""
    low, high, unit = row["minimum"], row["maximum"], row["unit"] or ""
    if low is None and high is None:
        return unit
    return f"{low:,} to {high:,} {unit}".strip() if low is not None and high is not None else unit
