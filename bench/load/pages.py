"""load.md and its plots: a verdict for each figure, and what happened over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import Figure, number
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
        """The page; returns it."""
        words = markdown(facts, figures, self.plots)
        file = RESULTS / f"{'load' if self.keep else 'quick-load'}.md"
        file.write_text(words)
        self.written.append(file)
        return words


def markdown(facts: Mapping[str, str], figures: Sequence[Figure], plots: Sequence[tuple[str, str]]) -> str:
    """A table of verdicts, then the plots."""
    lines = [
        "# Under load",
        "",
        "Made by `python -m bench.load`; [how](../../docs/explanation/figures.md#under-load).",
        "",
    ]
    lines += ["| lab | figure | found | target | verdict | beside it |", "|---|---|---|---|---|---|"]
    for figure in figures:
        found = f"{number(figure.value)} {figure.unit}"
        cells = figure.section, figure.name, found, str(figure.target or ""), verdict(figure), figure.company
        lines.append(f"| {' | '.join(cells)} |")
    lines += [""] + [f"- {name}: {value}" for name, value in facts.items()]
    for title, name in plots:
        lines += ["", f"![{title}]({name})"]
    return "\n".join([*lines, ""])


def verdict(figure: Figure) -> str:
    """In a word."""
    return {None: "", True: "reached", False: "**missed**"}[figure.reached]
