"""The page of figures that the repository keeps: each section as it was last measured at full size.

A whole run takes more than an hour of a quiet machine. `--keep` lets some sections be measured at a time: their figures
take the place of their older ones, and the page says of each section when it was measured and what share of the machine
others used meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import Figure, Target
from bench.measured import show
from bench.report import RESULTS, described, table

SECTIONS = "sections.json"
PAGE = "latest.md"


def keep(
    facts: Mapping[str, str],
    figures: Sequence[Figure],
    others: Mapping[str, str],
    order: Iterable[str],
    folder: Path = RESULTS,
) -> list[Path]:
    """Replace what is kept of the sections that `others` names, and write the page anew."""
    store = folder / SECTIONS
    kept: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {"facts": {}, "sections": {}}
    kept["facts"] = {name: facts[name] for name in ("server", "machine", "client") if name in facts}
    for section, share in others.items():
        found = [described(figure) for figure in figures if figure.section == section]
        kept["sections"][section] = {"measured": facts["date"], "others": share, "figures": found}
    kept["sections"] = {name: kept["sections"][name] for name in order if name in kept["sections"]}
    store.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    page = folder / PAGE
    page.write_text(markdown(kept))
    if folder == RESULTS:
        show("figures", page.read_text())
    return [store, page]


def markdown(kept: Mapping[str, Any]) -> str:
    """The page."""
    lines = ["# Figures", "", "Made by `make bench`; [how](../../docs/explanation/figures.md).", ""]
    lines += [f"- {name}: {value}" for name, value in kept["facts"].items()]
    lines += ["", *table(read(section, row) for section, of in kept["sections"].items() for row in of["figures"])]
    lines += ["", "| section | measured | others used of the machine |", "|---|---|---|"]
    lines += [f"| {name} | {of['measured']} | {of['others'] or '–'} |" for name, of in kept["sections"].items()]
    return "\n".join([*lines, ""])


def read(section: str, row: Mapping[str, Any]) -> Figure:
    """A figure as it was described."""
    bound = row["target"]
    target = Target(float(bound[2:].replace(",", "")), bound.startswith("≥")) if bound else None
    return Figure(section, row["name"], row["repeats"], target, row["beside"], row["unit"])
