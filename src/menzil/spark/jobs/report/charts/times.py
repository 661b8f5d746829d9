"""Charts over time: volume, and bands of percentiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from menzil.spark.jobs.report.charts import svg

Row = dict[str, Any]
WIDTH, HEIGHT = 1080.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 12.0, 14.0, 26.0


def filled(rows: Sequence[Row], width: int) -> list[Row]:
    """The rows with empty ones for the buckets that nothing happened in."""
    if not rows:
        return []
    known = {row["bucket"]: row for row in rows}
    first, last = rows[0]["bucket"], rows[-1]["bucket"]
    return [known.get(at, {"bucket": at}) for at in range(first, last + width, width)]


def _x(place: int, number: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (place / max(number - 1, 1))


#: Distances between marks below a chart, in seconds, and latencies that a scale may show.
DISTANCES = (1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_419_200, 29_030_400)
SCALE = (0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 21_600, 86_400, 604_800, 6_048_000)


def marks(rows: Sequence[Row], width: int, x: Callable[[int], float]) -> list[str]:
    """Times below: at most nine of them, on whole hours or days."""
    span = len(rows) * width
    distance = next((d for d in DISTANCES if d >= width and span / d <= 9), DISTANCES[-1])
    shown = "%d %b" if distance >= 86_400 else "%d %b %H:%M" if distance >= 60 else "%H:%M:%S"
    parts = []
    for place, row in enumerate(rows):
        if row["bucket"] % distance < width and (place == 0 or row["bucket"] % distance == 0):
            at = x(place)
            word = datetime.fromtimestamp(row["bucket"], UTC).strftime(shown)
            anchor = "start" if at < LEFT + 20 else "end" if at > WIDTH - 40 else "middle"
            parts.append(svg.text(at, HEIGHT - 8, word, "tick", anchor))
    return parts


def volume(rows: Sequence[Row], width: int) -> str:
    """Stacked: delivered, withdrawn (cancelled), not delivered (dead or expired)."""
    rows = filled(rows, width)
    steps = svg.ticks(max((row.get("sent", 0) for row in rows), default=0))
    high = steps[-1]

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / high

    parts = [svg.rule(LEFT, y(step), WIDTH - RIGHT, y(step)) for step in steps]
    parts += [svg.text(LEFT - 8, y(step) + 4, svg.short(step), "tick", "end") for step in steps]
    slot = (WIDTH - LEFT - RIGHT) / max(len(rows), 1)
    gap = 1.0 if slot > 3 else 0.0
    for place, row in enumerate(rows):
        left, low = LEFT + place * slot, 0
        bad = row.get("failed", 0) + row.get("expired", 0)
        tip = (
            f"{svg.moment(row['bucket'], width)}: {row.get('sent', 0):,} sent, {row.get('completed', 0):,} delivered, "
            f"{bad:,} not delivered"
        )
        for kind, value in (("good", row.get("completed", 0)), ("mute", row.get("cancelled", 0)), ("bad", bad)):
            if value:
                parts.append(svg.rect(left, y(low + value), slot - gap, y(low) - y(low + value), kind, tip))
                low += value
    parts += marks(rows, width, lambda place: LEFT + place * slot)
    return svg.drawing(WIDTH, HEIGHT, parts, "Messages over time, delivered and not delivered")


def bands(rows: Sequence[Row], width: int, column: str, goal: float | None = None) -> str:
    """p50 as a line, up to p90 and p99 as bands, on a logarithmic scale. A pause without messages is a gap."""
    rows = filled(rows, width)
    values = [value for row in rows for value in (row.get(column) or [])] + ([goal] if goal else [])
    if not values:
        return '<p class="none">Nothing was delivered in this window.</p>'
    low = max((step for step in SCALE if step <= min(values)), default=SCALE[0])
    high = min((step for step in SCALE if step >= max(values) and step > low), default=SCALE[-1])

    def y(value: float) -> float:
        share = math.log(min(max(value, low), high) / low) / math.log(high / low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    parts = []
    for step in SCALE:
        if low <= step <= high:
            parts.append(svg.rule(LEFT, y(step), WIDTH - RIGHT, y(step)))
            parts.append(svg.text(LEFT - 8, y(step) + 4, svg.unit(step), "tick", "end"))
    for run in _runs(rows, column):
        points = [[(_x(place, len(rows)), y(row[column][n])) for place, row in run] for n in range(3)]
        if len(run) == 1:  # one bucket alone has no length: a short stroke
            points = [[(x - 2, at), (x + 2, at)] for ((x, at),) in points]
        parts += [
            svg.area(points[2], points[1], "band99"),
            svg.area(points[1], points[0], "band90"),
            svg.line(points[0], "p50"),
        ]
        parts.append(svg.line(points[2], "p99"))
    if goal:
        parts.append(svg.rule(LEFT, y(goal), WIDTH - RIGHT, y(goal), "goal"))
        parts.append(svg.text(WIDTH - RIGHT - 4, y(goal) - 5, f"goal {svg.seconds(goal)}", "goalword", "end"))
    slot = (WIDTH - LEFT - RIGHT) / max(len(rows), 1)
    for place, row in enumerate(rows):
        if row.get(column):
            p50, p90, p99 = (svg.seconds(value) for value in row[column])
            tip = f"{svg.moment(row['bucket'], width)}: half within {p50}, 90 % within {p90}, 99 % within {p99}"
            parts.append(svg.rect(_x(place, len(rows)) - slot / 2, TOP, slot, HEIGHT - TOP - BOTTOM, "touch", tip))
    return svg.drawing(
        WIDTH,
        HEIGHT,
        [*parts, *marks(rows, width, lambda place: _x(place, len(rows)))],
        "Latency percentiles over time",
    )


def _runs(rows: Sequence[Row], column: str) -> list[list[tuple[int, Row]]]:
    runs: list[list[tuple[int, Row]]] = [[]]
    for place, row in enumerate(rows):
        if row.get(column):
            runs[-1].append((place, row))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
