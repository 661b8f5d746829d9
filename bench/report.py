"""The table at the end: Markdown to read, JSON to compare runs with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.figures import Figure, number

RESULTS = Path(__file__).parent / "results"


def markdown(circumstances: Mapping[str, str], figures: Sequence[Figure]) -> str:
    """The whole report."""
    lines = ["# Figures", "", "Made by `make bench`; [how](../../docs/explanation/figures.md).", ""]
    lines += [f"- {name}: {value}" for name, value in circumstances.items()]
    return "\n".join([*lines, "", *table(figures), ""])


def table(figures: Iterable[Figure]) -> list[str]:
    """A line for each figure."""
    lines = [
        "| section | figure | median | lowest–highest | target | | beside it |",
        "|---|---|---|---|---|---|---|",
    ]
    for figure in figures:
        cells = (
            figure.section,
            figure.name,
            f"{number(figure.value)} {figure.unit}",
            figure.spread,
            str(figure.target or ""),
            figure.verdict,
            figure.company,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def described(figure: Figure) -> dict[str, object]:
    """A figure as JSON has it."""
    return {
        "section": figure.section,
        "name": figure.name,
        "value": figure.value,
        "unit": figure.unit,
        "repeats": figure.values,
        "target": str(figure.target) if figure.target else None,
        "reached": figure.reached,
        "beside": figure.beside,
    }


def write(circumstances: Mapping[str, str], figures: Sequence[Figure], stamp: str) -> list[Path]:
    """Write both forms."""
    RESULTS.mkdir(exist_ok=True)
    data = {"circumstances": dict(circumstances), "figures": [described(figure) for figure in figures]}
    written = [RESULTS / f"{stamp}.md", RESULTS / f"{stamp}.json"]
    written[0].write_text(markdown(circumstances, figures))
    written[1].write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    return written
