"""The few pieces that all charts are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

Point = tuple[float, float]


def text(x: float, y: float, words: str, kind: str = "label", anchor: str = "start") -> str:
    """A line of text, escaped."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def rect(x: float, y: float, width: float, height: float, kind: str, tip: str = "", more: str = "") -> str:
    """A box, with what a mouse over it is told."""
    inside = f"<title>{escape(tip)}</title>" if tip else ""
    size = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"'
    return f'<rect {size} class="{kind}" {more}>{inside}</rect>'


def line(points: Sequence[Point], kind: str) -> str:
    """A line through points."""
    return f'<polyline points="{_joined(points)}" class="{kind}"/>' if points else ""


def area(upper: Sequence[Point], lower: Sequence[Point], kind: str) -> str:
    """What lies between two lines."""
    return f'<polygon points="{_joined([*upper, *reversed(lower)])}" class="{kind}"/>' if upper else ""


def dot(x: float, y: float, radius: float, kind: str) -> str:
    """A round point."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{kind}"/>'


def rule(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> str:
    """A straight line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def drawing(width: float, height: float, parts: Sequence[str], words: str, kind: str = "chart") -> str:
    """The whole picture; `words` is what it shows, for those who cannot see it."""
    return (
        f'<svg class="{kind}" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(words, quote=True)}">'
        + "".join(parts)
        + "</svg>"
    )


def _joined(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def ticks(top: float, wanted: int = 4) -> list[float]:
    """Round numbers from 0 to at least `top`."""
    if top <= 0:
        return [0.0, 1.0]
    raw = top / wanted
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw)
    return [step * n for n in range(math.ceil(top / step - 1e-9) + 1)]


def short(number: float) -> str:
    """1200 as 1.2 k."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def seconds(value: float | None) -> str:
    """A latency in the unit that a person would choose."""
    if value is None:
        return "–"
    for size, unit in ((172_800, "d"), (5_400, "h"), (90, "min")):
        if value >= size:
            return f"{value / {'d': 86_400, 'h': 3_600, 'min': 60}[unit]:.3g} {unit}"
    return f"{value:.3g} s" if value >= 1 else f"{value * 1000:.3g} ms"


def unit(value: float) -> str:
    """A round latency: 10 min, not 600 s."""
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if value >= size and value % size == 0:
            return f"{value / size:g} {name}"
    return f"{value * 1000:g} ms"


def moment(epoch: float, width: int) -> str:
    """The beginning of a bucket, no more exact than the bucket."""
    at = datetime.fromtimestamp(epoch, UTC)
    return at.strftime("%d %b %Y" if width >= 86_400 else "%d %b %H:%M" if width >= 60 else "%d %b %H:%M:%S")
