"""/: what matters now, what needs an operator, and how it went."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from markupsafe import Markup

from menzil.console import charts
from menzil.console.page import Page, Shown
from menzil.console.parts import Look, reading
from menzil.console.words import count, many, span
from menzil.ops import plans as plan_ops
from menzil.watch import curves
from menzil.watch import lake as lakes
from menzil.watch import overview as watching

#: Windows of the chart, by the word in the URL.
WINDOWS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "48h": timedelta(hours=48), "90d": timedelta(days=90)}


#: Where an operator sees more of what a check found; those of the others stand on the page of health.
PLACES: dict[str, tuple[str, dict[str, str]]] = {
    "backlog": ("/channels", {"sort": "waiting"}),
    "oldest message": ("/channels", {"sort": "oldest"}),
    "ordering keys": ("/channels", {"sort": "dead"}),
    "workers": ("/workers", {}),
    "leases": ("/workers", {}),
    "circuits": ("/endpoints", {}),
    "dead letters": ("/dead", {}),
    "schedules": ("/schedules", {}),
    "bridges": ("/bridges", {}),
}


def place(check: str) -> tuple[str, dict[str, str]]:
    """The page of a check."""
    return PLACES.get(check.replace("_", " "), ("/health", {}))


def window(words: Any) -> str:
    """The window that a URL asks for."""
    asked = words.get("window", "")
    return asked if asked in WINDOWS else "1h"


@reading()
def now(look: Look) -> dict[str, Any]:
    """The tiles, what needs an operator, and the channels that are worst off."""
    return watching.overview(look.run)


def holds(drawn: dict[str, Any]) -> float:
    """Seconds for which a chart stays as it is. It shows steps that are over; of a step a twelfth may be missing."""
    return min(float(drawn["step_s"]) / 12, 60.0)


@reading("window", holds=holds)
def curve(look: Look) -> dict[str, Any]:
    """The chart."""
    return curves.curve(look.run, since=WINDOWS[window(look.query)])


@reading()
def lake(look: Look) -> list[dict[str, Any]]:
    """How far readers of the feed are behind."""
    return lakes.consumers(look.run)


@reading()
def plans(look: Look) -> list[dict[str, Any]]:
    """Plans that run and say why they do not go on."""
    names = ("id", "kind", "done", "counted", "last_error", "started_at")
    return [{name: plan[name] for name in names} for plan in look.run(plan_ops.plans_that_wait(20))]


def _prepare(shown: Shown) -> dict[str, Any]:
    found, chosen = shown["now"], window(shown.query)
    waiting = found["waiting"] if found else None
    oldest = found["oldest_s"] if found else None
    title = "Overview"
    if found:
        urgent = sum(1 for one in found["findings"] if one["level"] == "critical")
        title = f"{many(found['waiting'], 'message')} waiting"
        title = f"{many(urgent, 'problem')}, {title}" if urgent else title
    drawn = shown["curve"]
    return {
        "title": title,
        "heading": "Overview",
        "told": f"{count(waiting)} waiting, oldest {span(oldest)}" if found else "",
        "tiles": tiles(found) if found else [],
        "place": place,
        "most_dead": watching.DEAD,
        "windows": list(WINDOWS),
        "chosen": chosen,
        "picture": charts.flow(drawn) if drawn and lively(drawn) else None,
        "rows": rows(drawn) if drawn else [],
        "step": span(drawn["step_s"]).removeprefix("1 ") if drawn else "",
        "uncounted": drawn["uncounted_since"] if drawn else None,
    }


class Tile(NamedTuple):
    """A number, one line more, where it leads, and how it went."""

    id: str
    name: str
    value: str
    more: str
    path: str
    query: dict[str, str]
    spark: Markup
    kind: str = ""


def tiles(found: dict[str, Any]) -> list[Tile]:
    """The six numbers: each with a line more, its spark and its link.

    The minute that is not over is left out of what completed: its low count would look like a fall.
    """
    sparks, rates = found["sparks"], found["rates"]
    late = found["oldest_s"] > 300 and found["waiting"] > 0
    waiting = f"{count(found['scheduled'])} scheduled, {count(found['behind_key'])} behind a key"
    flowing, failing, dying = "flow not counted", "tries not counted", "deaths not counted"
    if rates["sent"] is not None:
        dying = f"{count(sum(number or 0 for number in sparks['dead']))} in the last hour"
        flowing = f"{rates['sent']:,.1f} in, {rates['completed']:,.1f} out per min"
        failing = f"{rates['failed_tries']:,.1f} failed tries per min"
    oldest = span(found["oldest_s"]) if found["waiting"] else "–"
    alive = found["workers_alive"]
    missed = not alive and found["waiting"]
    return [
        Tile("waiting", "Waiting", count(found["waiting"]), waiting, "/messages", {"q": "status:pending"},
             charts.spark(sparks["waiting"], "Waiting, last hour")),
        Tile("oldest", "Oldest due", oldest, flowing, "/channels", {"sort": "oldest"},
             charts.spark(sparks["oldest_s"], "Age of the oldest, last hour"), "bad" if late else ""),
        Tile("flight", "In flight", count(found["in_flight"]), failing, "/messages", {"q": "status:processing"},
             charts.spark(sparks["in_flight"], "In flight, last hour")),
        Tile("dead", "Dead letters", watching.dead(found), dying, "/dead",
             {},
             charts.spark(sparks["dead"], "Died, last hour", "bad"), "warn" if found["dead"] else ""),
        Tile("p95", "p95 sent to ended", span(_seconds(found["p95_ms"])), "over the last hour", "/channels",
             {"sort": "rate"}, charts.spark(sparks["p95_ms"], "p95 of sent to ended, last hour")),
        Tile("alive", "Workers alive", count(alive), "" if alive else "no worker is alive", "/workers", {},
             charts.spark(sparks["completed"][:-1], "Completed, last hour", "good"), "bad" if missed else ""),
    ]  # fmt: skip


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000


def lively(drawn: dict[str, Any]) -> bool:
    """Whether anything happened in the window of a chart."""
    return any(point[name] for point in drawn["points"] for name in ("sent", "completed", "failed_tries"))


def rows(drawn: dict[str, Any]) -> list[list[str]]:
    """The table beneath the chart, newest first."""
    return [
        [
            f"{one['at']:%d %b %H:%M}",
            count(one["sent"]),
            count(one["completed"]),
            count(one["failed_tries"]),
            count(one["dead"]),
        ]
        for one in reversed(drawn["points"])
    ]


def _twin(shown: Shown) -> Any:
    return {**(shown["now"] or {}), "curve": shown["curve"], "consumers": shown["lake"], "plans": shown["plans"]}


PAGE = Page(
    "/",
    "overview.html",
    {"now": now, "curve": curve, "lake": lake, "plans": plans},
    _prepare,
    twin=_twin,
    twin_path="/overview.json",
    live=3,
    asks=("window",),
    choices={"window": tuple(WINDOWS)},
)
