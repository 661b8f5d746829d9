"""load.md and its plots: a verdict for each figure, and what happened over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import Figure, number
from bench.measured import show
from bench.plot.lines import Chart, draw
from bench.report import RESULTS


@dataclass
class Page:
    """Plots are written at once; the page at the end. Those of a short run get another name."""

    keep: bool
    plots: list[tuple[str, str]] = field(default_factory=list)  # titles and file names
    written: list[Path] = field(default_factory=list)

    def plot(self, name: str, chart: Chart) -> None:
        file = RESULTS / f"{name if self.keep else 'quick-' + name}.svg"
        file.write_text(draw(chart))
        self.plots.append((chart.title, file.name))
        self.written.append(file)

    def write(self, facts: Mapping[str, str], figures: Sequence[Figure]) -> str:
        """The page; returns it. What another run found in other labs stays."""
        file = RESULTS / f"{'load' if self.keep else 'quick-load'}.md"
        before = file.read_text() if self.keep and file.exists() else ""
        words = markdown(facts, figures, self.plots, before)
        file.write_text(words)
        self.written.append(file)
        if self.keep:
            show("load", words)
        return words


_RUN = "- run: "
_HEAD = [
    "# Under load",
    "",
    "Made by `python -m bench.load`; [how](../../docs/explanation/figures.md#under-load).",
    "",
    "| lab | figure | found | target | verdict | beside it |",
    "|---|---|---|---|---|---|",
]


def markdown(
    facts: Mapping[str, str], figures: Sequence[Figure], plots: Sequence[tuple[str, str]], before: str = ""
) -> str:
    """A table of verdicts, the circumstances of each run, then the plots. `before` is the page as it was."""
    rows = [_row(figure) for figure in figures]
    mine = {figure.section for figure in figures}
    old = [line for line in before.splitlines() if line not in _HEAD]
    others = [line for line in old if line.startswith("| ") and line.split("|")[1].strip() not in mine]
    circumstances = [f"- {name}: {value}" for name, value in facts.items()]
    circumstances += [line for line in old if others and line.startswith(_RUN) and not _labs(line) <= mine]
    shown = [f"![{title}]({name})" for title, name in plots]
    shown += [line for line in old if line.startswith("![") and others and line not in shown]
    lines = [*_HEAD, *rows, *others, "", *circumstances]
    for plot in shown:
        lines += ["", plot]
    return "\n".join([*lines, ""])


def _labs(run: str) -> set[str]:
    return set(run.removeprefix(_RUN).partition(",")[0].split())


def _row(figure: Figure) -> str:
    found = f"{number(figure.value)} {figure.unit}"
    cells = figure.section, figure.name, found, str(figure.target or ""), verdict(figure), figure.company
    return f"| {' | '.join(cells)} |"


def verdict(figure: Figure) -> str:
    """In a word."""
    return {None: "", True: "reached", False: "**missed**"}[figure.reached]
