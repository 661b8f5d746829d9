"""Lines over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.plot import svg

WIDTH, HEIGHT = 760.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 18.0, 66.0, 42.0
KINDS = "abcde"


@dataclass(frozen=True)
class Series:
    """One line."""

    name: str
    points: Sequence[svg.Point]


@dataclass(frozen=True)
class Chart:
    """Lines that share their axes; both begin at 0."""

    title: str
    up: str  # what the vertical axis counts
    along: str
    series: Sequence[Series]


def draw(chart: Chart) -> str:
    """The whole file."""
    points = [point for series in chart.series for point in series.points]
    across = svg.ticks(max((x for x, _ in points), default=0), 6)
    upward = svg.ticks(max((y for _, y in points), default=0), 4)

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / across[-1]

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / upward[-1]

    parts = [svg.box(0.5, 0.5, WIDTH - 1, HEIGHT - 1, "card", 10), svg.text(16, 26, chart.title, "title")]
    for tick in upward:
        parts.append(svg.rule(LEFT, y(tick), WIDTH - RIGHT, y(tick)))
        parts.append(svg.text(LEFT - 8, y(tick) + 4, svg.short(tick), "", "end"))
    parts += [svg.text(x(tick), HEIGHT - BOTTOM + 18, svg.short(tick), "", "middle") for tick in across]
    parts.append(svg.text(WIDTH - RIGHT, HEIGHT - 8, chart.along, "", "end"))
    parts.append(svg.text(16, 46, chart.up))
    at = WIDTH - RIGHT
    for kind, series in reversed(list(zip(KINDS, chart.series, strict=False))):
        at -= 7.0 * len(series.name) + 8
        parts.append(svg.text(at, 46, series.name, "name"))
        parts.append(svg.box(at - 15, 37, 10, 10, f"f{kind}", 3))
        at -= 26
        parts.append(svg.line([(x(a), y(b)) for a, b in series.points], kind))
    return svg.drawing(WIDTH, HEIGHT, parts, chart.title)
