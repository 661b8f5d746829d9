"""/channels/{name}: one channel over time, its limits drawn, what comes next, and who serves it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from menzil.console import charts, drawings
from menzil.console.named import demand_channel
from menzil.console.page import Page, Shown
from menzil.console.pages.channels import state_kind
from menzil.console.pages.overview import WINDOWS, holds, lively, rows, window
from menzil.console.parts import Look, reading
from menzil.console.words import capped, span
from menzil.ops import why
from menzil.watch import channels as watching
from menzil.watch import curves
from menzil.watch.states import CAP


@reading()
def channel(look: Look) -> dict[str, Any]:
    """How it stands."""
    name = look.path["name"]
    demand_channel(look.run, name)
    return watching.channel(look.run, name, redactor=look.redact())


@reading("window", holds=holds)
def curve(look: Look) -> dict[str, Any]:
    """How it went."""
    return curves.curve(look.run, look.path["name"], since=WINDOWS[window(look.query)])


@reading()
def leases(look: Look) -> list[dict[str, Any]]:
    """The leases in the window of its rate limit."""
    return look.run(why.channel_window(look.path["name"]))


def _prepare(shown: Shown) -> dict[str, Any]:
    found, drawn, name = shown["channel"], shown["curve"], shown.path["name"]
    now = datetime.now(UTC)
    values: dict[str, Any] = {
        "title": f"{capped(found['waiting'])} waiting in {name}" if found else name,
        "heading": name,
        "kind": state_kind(found) if found else "idle",
        "slots": None,
        "ruler": None,
        "bar": "",
        "behind": 0,
        "windows": list(WINDOWS),
        "chosen": window(shown.query),
        "picture": charts.flow(drawn) if drawn and lively(drawn) else None,
        "waits": charts.gauge(drawn, "waiting", "Waiting") if drawn else None,
        "ages": charts.gauge(drawn, "oldest_s", "Age of the oldest", _age) if drawn else None,
        "rows": rows(drawn) if drawn else [],
        "step": span(drawn["step_s"]).removeprefix("1 ") if drawn else "",
        "uncounted": drawn["uncounted_since"] if drawn else None,
    }
    if found:
        if found["max_concurrency"]:
            values["slots"] = drawings.slots(found["in_flight"], found["max_concurrency"])
        if found["rate_limit"] and shown["leases"] is not None:
            values["ruler"] = drawings.ruler(found, shown["leases"], now)
        values["behind"] = behind(found)
        values["bar"] = drawings.priorities(found["waiting_by_priority"] or {}, found["waiting"])
        values["told"] = f"{capped(found['waiting'])} waiting, {found['state']}"
    return values


def behind(found: dict[str, Any]) -> int:
    """How many of those that wait have no place in a lane: behind their ordering key, or due since the last dequeue.

    0 where counts stopped at a cap: nothing can be said about the difference of two of those.
    """
    waiting, placed = found["waiting"], sum((found["waiting_by_priority"] or {}).values())
    return 0 if found["at_least"] or waiting > CAP else max(waiting - placed, 0)


def _age(seconds: float) -> str:
    return span(seconds) if seconds else "0"


def _twin(shown: Shown) -> Any:
    return {**(shown["channel"] or {}), "curve": shown["curve"], "leases": shown["leases"]}


PAGE = Page(
    "/channels/{name}", "channel.html", {"channel": channel, "curve": curve, "leases": leases}, _prepare, twin=_twin,
    nav="/channels", live=3, asks=("window",),
    choices={"window": tuple(WINDOWS)},
)  # fmt: skip
