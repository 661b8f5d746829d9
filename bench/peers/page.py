"""peers.md and peers.svg: what the sections peer_… found, to be read and to be shown."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from bench.figures import number
from bench.measured import show
from bench.peers.league import Column, League, markdown
from bench.peers.roster import LIMIT, OURS
from bench.plot.bars import Bar, Panel, panels
from bench.report import RESULTS

UNDER = "Shares of what bare tables do on the same server in the same run; milliseconds are on a logarithmic scale."


def write(
    league: League, facts: dict[str, str], absent: dict[str, str], versions: dict[str, str], *, keep: bool
) -> list[Path]:
    """Write both, and the table into the page of figures; those of a short run get another name and stay out of it."""
    name = "peers" if keep else "quick-peers"
    written = [RESULTS / f"{name}.md", RESULTS / f"{name}.svg"]
    page = markdown(league, facts, absent, versions)
    written[0].write_text(page.replace("peers.svg", f"{name}.svg"))
    written[1].write_text(plot(league))
    if keep:
        show("peers", page)
    return written


def plot(league: League) -> str:
    """A panel for each figure."""
    names = league.entrants()
    shown = [_panel(column, names) for column in league.columns.values() if any(column.values.values())]
    return panels("menzil and its peers", UNDER, shown)


def _panel(column: Column, names: list[str]) -> Panel:
    kinds = {OURS: "ours", LIMIT: "limit"}
    there = [name for name in names if name in column.values or name != LIMIT]
    bars = [Bar(name, column.value(name), kinds.get(name, "peer")) for name in there]
    best, word, good = column.best(), "", True
    if best and (ratios := column.ratios(best)):
        ratio = median(ratios)
        word, good = f"{number(ratio)} × {best}", ratio >= 1
    unit = "ms" if column.unit == "ms" else "×"
    head = column.name if column.unit in ("ms", "×") else f"{column.name} ({column.unit})"
    return Panel(head, unit, bars, word, good, logarithmic=unit == "ms")
