"""The table at the end: Markdown to read, JSON to compare runs with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.figures import Figure, number

RESULTS = Path(__file__).parent / "results"


def markdown(circumstances: Mapping[str, str], figures: Sequence[Figure]) -> str:
    """The whole report."""
    lines = ["# Figures", "", "Made by `make bench`; [how](../../docs/explanation/figures.md).", ""]
    lines += [f"- {name}: {value}" for name, value in circumstances.items()]
    lines += [
        "",
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
    return "\n".join([*lines, ""])


def write(circumstances: Mapping[str, str], figures: Sequence[Figure], stamp: str, *, keep: bool) -> list[Path]:
    """Write both forms; `keep` also replaces the copy that is kept in the repository."""
    RESULTS.mkdir(exist_ok=True)
    text = markdown(circumstances, figures)
    data = {
        "circumstances": dict(circumstances),
        "figures": [
            {
                "section": figure.section,
                "name": figure.name,
                "value": figure.value,
                "unit": figure.unit,
                "repeats": figure.values,
                "target": str(figure.target) if figure.target else None,
                "reached": figure.reached,
                "beside": figure.beside,
            }
            for figure in figures
        ],
    }
    written = [RESULTS / f"{stamp}.md", RESULTS / f"{stamp}.json"]
    written[0].write_text(text)
    written[1].write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    if keep:
        written.append(RESULTS / "latest.md")
        written[-1].write_text(text)
    return written
