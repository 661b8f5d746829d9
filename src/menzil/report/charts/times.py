"""Charts over time: volume, and bands of percentiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from menzil.report.charts import svg
from menzil.report.charts.frame import Frame, ceiling

Row = dict[str, Any]

#: Distances between marks below a chart, in seconds, and latencies that a scale may show.
DISTANCES = (1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_419_200, 29_030_400)
SCALE = (0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 21_600, 86_400, 604_800, 6_048_000)


def filled(rows: Sequence[Row], width: int) -> list[Row]:
    """The rows with empty ones for the buckets that nothing happened in."""
    if not rows:
        return []
    known = {row["bucket"]: row for row in rows}
    first, last = rows[0]["bucket"], rows[-1]["bucket"]
    return [known.get(at, {"bucket": at}) for at in range(first, last + width, width)]


def marks(frame: Frame, rows: Sequence[Row], width: int, x: Callable[[int], float]) -> list[str]:
    """Times below: no more than fit, on whole hours or days."""
    span = len(rows) * width
    distance = next((d for d in DISTANCES if d >= width and span / d <= frame.marks), DISTANCES[-1])
    shown = "%d %b" if distance >= 86_400 else "%d %b %H:%M" if distance >= 60 else "%H:%M:%S"
    parts = []
    for place, row in enumerate(rows):
        if row["bucket"] % distance < width and (place == 0 or row["bucket"] % distance == 0):
            at = x(place)
            word = datetime.fromtimestamp(row["bucket"], UTC).strftime(shown)
            anchor = "start" if at < frame.left + 20 else "end" if at > frame.end - 30 else "middle"
            parts.append(svg.text(at, frame.height - 8, word, "tick", anchor))
    if not parts and rows:  # a window that lies between two marks
        word = svg.moment(rows[0]["bucket"], width)
        parts.append(svg.text(frame.left, frame.height - 8, word, "tick", "start"))
    return parts


def volume(frame: Frame, rows: Sequence[Row], width: int) -> str:
    """Stacked: delivered, withdrawn (cancelled), not delivered (dead or expired). A spike is cut, with its number."""
    rows = filled(rows, width)
    steps = svg.ticks(ceiling([row.get("sent", 0) for row in rows]))
    high = steps[-1]

    def y(value: float) -> float:
        return frame.up(min(value, high) / high)

    parts = [svg.rule(frame.left, y(step), frame.end, y(step)) for step in steps]
    parts += [svg.text(frame.left - 8, y(step) + 4, svg.short(step), "tick", "end") for step in steps]
    slot = frame.inner / max(len(rows), 1)
    gap = 1.0 if slot > 3 else 0.0
    for place, row in enumerate(rows):
        left, low = frame.left + place * slot, 0
        bad = row.get("failed", 0) + row.get("expired", 0)
        tip = (
            f"{svg.moment(row['bucket'], width)}: {row.get('sent', 0):,} sent, {row.get('completed', 0):,} delivered, "
            f"{bad:,} not delivered"
        )
        for kind, value in (("good", row.get("completed", 0)), ("mute", row.get("cancelled", 0)), ("bad", bad)):
            if value:
                # One message beside a thousand is still seen, and a failure most of all.
                tall = max(y(low) - y(low + value), 2.0)
                parts.append(svg.rect(left, min(y(low + value), y(low) - tall), max(slot - gap, 1), tall, kind, tip))
                low += value
        if row.get("sent", 0) > high:
            parts.append(
                svg.text(left + slot / 2, frame.top - 5, f"▲ {svg.short(row['sent'])}", "spike", _side(frame, left))
            )
    parts += marks(frame, rows, width, lambda place: frame.left + place * slot)
    return svg.drawing(frame.width, frame.height, parts, "Messages over time, delivered and not delivered")


def _side(frame: Frame, x: float) -> str:
    return "start" if x < frame.left + 30 else "end" if x > frame.end - 40 else "middle"


def bands(frame: Frame, rows: Sequence[Row], width: int, column: str, goal: float | None = None) -> str:
    """p50 as a line, up to p90 and p99 as bands, on a logarithmic scale. A pause without messages is a gap.

    A bucket without neighbours has no line to be part of: it is drawn as a dot, with a stem up to its p99.
    """
    rows = filled(rows, width)
    values = [value for row in rows for value in (row.get(column) or [])] + ([goal] if goal else [])
    if not values:
        return '<p class="none">Nothing was delivered in this window.</p>'
    low = max((step for step in SCALE if step <= min(values)), default=SCALE[0])
    high = min((step for step in SCALE if step >= max(values) and step > low), default=SCALE[-1])

    def x(place: int) -> float:
        return frame.left + frame.inner * (place / (len(rows) - 1) if len(rows) > 1 else 0.5)

    def y(value: float) -> float:
        return frame.up(math.log(min(max(value, low), high) / low) / math.log(high / low))

    parts = []
    for step in SCALE:
        if low <= step <= high:
            parts.append(svg.rule(frame.left, y(step), frame.end, y(step)))
            parts.append(svg.text(frame.left - 8, y(step) + 4, svg.unit(step), "tick", "end"))
    for run in _runs(rows, column):
        if len(run) == 1:
            ((place, row),) = run
            parts.append(svg.rule(x(place), y(row[column][0]), x(place), y(row[column][2]), "stem"))
            parts.append(svg.dot(x(place), y(row[column][0]), 3.5, "p50dot"))
            continue
        points = [[(x(place), y(row[column][n])) for place, row in run] for n in range(3)]
        parts += [
            svg.area(points[2], points[1], "band99"),
            svg.area(points[1], points[0], "band90"),
            svg.line(points[0], "p50"),
            svg.line(points[2], "p99"),
        ]
    if goal:
        parts.append(svg.rule(frame.left, y(goal), frame.end, y(goal), "goal"))
        parts.append(svg.text(frame.end - 4, y(goal) - 5, f"goal {svg.seconds(goal)}", "goalword", "end"))
    slot = frame.inner / max(len(rows), 1)
    for place, row in enumerate(rows):
        if row.get(column):
            p50, p90, p99 = (svg.seconds(value) for value in row[column])
            tip = f"{svg.moment(row['bucket'], width)}: half within {p50}, 90 % within {p90}, 99 % within {p99}"
            parts.append(svg.rect(x(place) - slot / 2, frame.top, slot, frame.low - frame.top, "touch", tip))
    parts += marks(frame, rows, width, x)
    return svg.drawing(frame.width, frame.height, parts, "Latency percentiles over time")


def _runs(rows: Sequence[Row], column: str) -> list[list[tuple[int, Row]]]:
    runs: list[list[tuple[int, Row]]] = [[]]
    for place, row in enumerate(rows):
        if row.get(column):
            runs[-1].append((place, row))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
