"""Small panels of bars, one per figure, a bar for each entrant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.plot import svg

ACROSS = 2
WIDTH, MARGIN, GAP, ROW = 460.0, 16.0, 14.0, 21.0
NAMES, VALUES = 118.0, 64.0  # room for the words on both sides of a bar


@dataclass(frozen=True)
class Bar:
    """One entrant of a panel."""

    name: str
    value: float | None
    kind: str = "peer"  # or ours, or limit


@dataclass(frozen=True)
class Panel:
    """One figure; `word` says how the first one stands, and `good` whether that is well."""

    head: str
    unit: str
    bars: Sequence[Bar]
    word: str = ""
    good: bool = True
    logarithmic: bool = False


def panels(title: str, under: str, several: Sequence[Panel]) -> str:
    """All panels on one sheet, two beside each other."""
    width = MARGIN * 2 + WIDTH * ACROSS + GAP
    parts = [svg.text(MARGIN, 26, title, "title"), svg.text(MARGIN, 46, under)]
    top = 62.0
    for first in range(0, len(several), ACROSS):
        row = several[first : first + ACROSS]
        height = 50 + ROW * max(len(panel.bars) for panel in row)
        for place, panel in enumerate(row):
            parts += _panel(panel, MARGIN + place * (WIDTH + GAP), top, height)
        top += height + GAP
    return svg.drawing(width, top + 2, [svg.box(0.5, 0.5, width - 1, top + 1, "card", 10), *parts], title)


def _panel(panel: Panel, left: float, top: float, height: float) -> list[str]:
    parts = [svg.box(left, top, WIDTH, height, "card", 8), svg.text(left + 14, top + 22, panel.head, "head")]
    if panel.word:
        parts.append(svg.text(left + WIDTH - 14, top + 22, panel.word, _kind(panel), "end"))
    known = [bar.value for bar in panel.bars if bar.value]
    high, low = max(known, default=1.0), min(known, default=1.0)
    room = WIDTH - NAMES - VALUES - 24
    for place, bar in enumerate(panel.bars):
        y = top + 36 + place * ROW
        parts.append(svg.text(left + NAMES, y + 12, bar.name, "ours-name" if bar.kind == "ours" else "name", "end"))
        parts.append(svg.box(left + NAMES + 10, y + 2, room, 13, "rail"))
        if bar.value is None:
            parts.append(svg.text(left + NAMES + 18, y + 13, "not measured"))
            continue
        share = bar.value / high
        if panel.logarithmic and high > low > 0:
            share = 0.06 + 0.94 * math.log(bar.value / low) / math.log(high / low)
        word = f"{_digits(bar.value)} {panel.unit}"
        parts.append(svg.box(left + NAMES + 10, y + 2, max(room * share, 1.5), 13, bar.kind, 3, f"{bar.name}: {word}"))
        parts.append(svg.text(left + WIDTH - 12, y + 13, word, "ours-name" if bar.kind == "ours" else "", "end"))
    return parts


def _digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.005 else f"{value:.0e}".replace("e-0", "e-")


def _kind(panel: Panel) -> str:
    return "good-word" if panel.good else "bad-word"
