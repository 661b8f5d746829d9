"""What the contest found: a table of entrants and figures, and where menzil stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from bench.figures import number
from bench.peers.roster import LIMIT, OURS


@dataclass
class Column:
    """One figure of all entrants, repeat by repeat."""

    name: str
    unit: str
    more: bool = True  # whether more is better
    values: dict[str, list[float]] = field(default_factory=dict)
    beside: dict[str, list[float]] = field(default_factory=dict)  # calibrations, plain
    cpu: dict[str, list[float]] = field(default_factory=dict)  # microseconds per message, client and server together

    def add(self, entrant: str, value: float, cpu: float | None = None) -> None:
        self.values.setdefault(entrant, []).append(value)
        if cpu is not None:
            self.cpu.setdefault(entrant, []).append(cpu)

    def calibrate(self, name: str, value: float) -> None:
        self.beside.setdefault(name, []).append(value)

    def value(self, entrant: str) -> float | None:
        found = self.values.get(entrant)
        return median(found) if found else None

    def best(self) -> str | None:
        """The best of the others; the bare limit does not count."""
        others = {name: median(each) for name, each in self.values.items() if each and name not in (OURS, LIMIT)}
        if not others:
            return None
        return max(others, key=others.__getitem__) if self.more else min(others, key=others.__getitem__)

    def ratios(self, entrant: str) -> list[float]:
        """menzil against this one, repeat by repeat; more than 1 is better for every figure."""
        ours, theirs = self.values.get(OURS, []), self.values.get(entrant, [])
        pairs = [(one, other) for one, other in zip(ours, theirs, strict=False) if one > 0 and other > 0]
        return [one / other if self.more else other / one for one, other in pairs]


@dataclass
class League:
    """All figures, in the order they were measured."""

    columns: dict[str, Column] = field(default_factory=dict)

    def column(self, name: str, unit: str, *, more: bool = True) -> Column:
        return self.columns.setdefault(name, Column(name, unit, more))

    def entrants(self) -> list[str]:
        """menzil first, the limit last."""
        seen = list(dict.fromkeys(name for column in self.columns.values() for name in column.values))
        others = sorted(name for name in seen if name not in (OURS, LIMIT))
        return [name for name in (OURS, *others, LIMIT) if name in seen]


def markdown(league: League, facts: dict[str, str], absent: dict[str, str], versions: dict[str, str]) -> str:
    """The page, in the shape a README can include."""
    names = league.entrants()
    lines = ["# menzil and its peers", "", "![Each figure with a bar for each queue](peers.svg)", ""]
    lines += [
        "One server, one run, everybody in turn; medians. A cell is a share of what bare tables do, no speed.",
        "**Bold** is the best queue of a line; *bare SQL* is a table with SKIP LOCKED and nothing else, the limit. The",
        "last column is menzil against the best of the others: more than 1 is better, also for milliseconds.",
        "[How it is measured](../../docs/explanation/figures.md#other-queues).",
        "",
        f"| | unit | {' | '.join(names)} | menzil / best other | beside it |",
        f"|---|---|{'---:|' * len(names)}---|---|",
    ]
    lines += [_line(column, names) for column in league.columns.values()]
    lines += _by_cpu(league, names)
    lines.append("")
    lines += [f"- {name} {version}" for name, version in sorted(versions.items())]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += [f"- left out: {name}: {reason}" for name, reason in absent.items()]
    return "\n".join([*lines, ""])


def _by_cpu(league: League, names: list[str]) -> list[str]:
    """The second table: what a message costs beside what it costs menzil."""
    columns = [column for column in league.columns.values() if column.cpu.get(OURS)]
    if not columns:
        return []
    lines = [
        "",
        "Processor time per message, client and server together, as a multiple of menzil's: less is better. A busy",
        "machine or a slow disk changes this far less than the clock.",
        "",
        f"| | {' | '.join(names)} | menzil µs |",
        f"|---|{'---:|' * len(names)}---:|",
    ]
    for column in columns:
        ours = median(column.cpu[OURS])
        cells = [number(median(column.cpu[name]) / ours) if column.cpu.get(name) else "–" for name in names]
        lines.append(f"| {column.name} | {' | '.join(cells)} | {number(ours)} |")
    return lines


def _line(column: Column, names: list[str]) -> str:
    values = {name: column.value(name) for name in names}
    queues = [value for name, value in values.items() if value is not None and name != LIMIT]
    top = (max if column.more else min)(queues, default=None)
    cells = []
    for name, value in values.items():
        word = "–" if value is None else number(value) if value >= 0.005 else f"{value:.1g}"
        cells.append(f"**{word}**" if value == top and name != LIMIT else word)
    best = column.best()
    standing = "–"
    if best and (ratios := column.ratios(best)):
        ratio = median(ratios)
        standing = f"{number(ratio)} × {best}{'' if ratio >= 1 else ' (behind)'}"
    beside = ", ".join(f"{name} {number(median(each))}" for name, each in column.beside.items())
    return f"| {column.name} | {column.unit} | {' | '.join(cells)} | {standing} | {beside} |"
