"""/channels: how each channel stands."""

from __future__ import annotations

from typing import Any

from menzil.console import charts, drawings
from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.words import count, many
from menzil.watch import channels as watching

LIMIT = 100

KINDS = {
    "paused": "warn", "disabled": "bad", "circuit": "bad", "rest": "warn", "released": "warn",
    "concurrency": "busy", "rate": "busy",
}  # fmt: skip


@reading("sort", "after", "limit", "contains", "held")
def channels(look: Look) -> dict[str, Any]:
    """A page of them, by name, or the first ones by something else."""
    sort = look.text("sort", "name")
    return watching.channels(
        look.run,
        after=look.text("after"),
        limit=look.number("limit", LIMIT, 1, 1000),
        contains=look.line("contains", 200),
        sort=sort if sort in watching.SORTS else "name",
        held=look.text("held") == "1",
    )


def _prepare(shown: Shown) -> dict[str, Any]:
    found = shown["channels"]
    rows = found["channels"] if found else []
    held = sum(1 for row in rows if row["held_by"])
    title = f"{many(held, 'channel')} held" if held else many(len(rows), "channel")
    return {
        "title": title,
        "heading": "Channels",
        "told": title,
        "sort": shown.query.get("sort", "name"),
        "contains": shown.query.get("contains", ""),
        "held": shown.query.get("held") == "1",
        "rows": [_row(row) for row in rows],
        "filtered": bool(shown.query.get("contains") or shown.query.get("held")),
    }


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "kind": state_kind(row),
        "bar": drawings.priorities(row["waiting_by_priority"] or {}, row["waiting"]) if row["waiting"] else "",
        "spark": charts.spark(
            row["spark"], f"Completed per minute, last hour: {count(sum(one or 0 for one in row['spark']))}"
        ),
    }


def kind(held_by: str | None) -> str:
    """The colour of a state; its word stands beside it."""
    return KINDS.get(held_by or "", "good")


def state_kind(row: dict[str, Any]) -> str:
    """The colour of a channel's state."""
    missed = row["held_by"] is None and row["workers"] == 0
    if missed and (row["waiting"] or row["in_flight"]):
        return "bad" if row["waiting"] else "warn"  # a worker that stops may end what it has
    return "idle" if row["state"] == "idle" else kind(row["held_by"])


PAGE = Page(
    "/channels",
    "channels.html",
    {"channels": channels},
    _prepare,
    twin=lambda shown: shown["channels"],
    asks=("sort", "after", "limit", "contains", "held"),
    choices={"sort": tuple(watching.SORTS), "held": ("1",)},
)
