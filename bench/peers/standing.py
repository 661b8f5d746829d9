"""From a column of the league to a figure of the report: menzil against the best of the others."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from bench.peers.league import Column
from bench.peers.roster import OURS

if TYPE_CHECKING:
    from bench.session import Session


def conclude(session: Session, column: Column, *, at_least: float | None = 1.0) -> None:
    """Keep the figure, with the value of each peer beside it; nothing where no peer was measured."""
    best = column.best()
    ratios = column.ratios(best) if best else []
    if not best or not ratios:
        session.say(f"{column.name}: no peer to compare menzil with")
        return
    beside = {name: [median(values)] for name, values in column.values.items() if values}
    order = {OURS: beside[OURS], **beside, **column.beside}
    if column.cpu.get(OURS) and column.cpu.get(best):
        order["by CPU"] = [median(column.cpu[best]) / median(column.cpu[OURS])]
    session.figure(f"{column.name}, menzil / {best}", ratios, at_least=at_least, beside=order)
