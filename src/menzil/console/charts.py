"""Charts over time, as SVG made on the server: classes only, no script, a sentence as the name of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup

from menzil.console.texts import plain
from menzil.console.words import count, span
from menzil.report.charts import svg
from menzil.report.charts.frame import Frame, both, ceiling
from menzil.report.charts.times import DISTANCES

Point = Mapping[str, Any]

#: A chart that has another one beside it.
HALF = Frame(540, 150, 58, 10, 4)


def _whole(curve: Mapping[str, Any]) -> Mapping[str, Any]:
    """The curve without the step that is not over: its low counts would look like a fall."""
    step = timedelta(seconds=curve["step_s"])
    points = [point for point in curve["points"] if point["at"] + step <= curve["to"]]
    return {**curve, "points": points} if len(points) > 1 else curve


def flow(curve: Mapping[str, Any]) -> Markup:
    """Sent, completed and failed tries per step, with marks of what was done meanwhile."""
    curve = _whole(curve)
    points, step = curve["points"], curve["step_s"]
    names = ("sent", "completed", "failed_tries")
    counted = [(place, point) for place, point in enumerate(points) if point["sent"] is not None]
    totals = {name: sum(point[name] for _, point in counted) for name in names}
    words = (
        f"Messages per {span(step)} since {_when(points[0]['at'], step)} UTC: {count(totals['sent'])} sent, "
        f"{count(totals['completed'])} completed, {count(totals['failed_tries'])} failed tries"
    )

    def draw(frame: Frame) -> str:
        top = max(ceiling([point[name] for _, point in counted]) for name in names)
        parts, x, y = _axes(frame, points, step, top, svg.short)
        low = [(x(place), frame.low) for place, _ in counted]
        sent = [(x(place), y(point["sent"])) for place, point in counted]
        done = [(x(place), y(point["completed"])) for place, point in counted]
        failed = [(x(place), y(point["failed_tries"])) for place, point in counted]
        parts += [svg.area(sent, low, "fill sent"), svg.line(sent, "line sent"), svg.line(done, "line done")]
        if totals["failed_tries"]:
            parts += [svg.area(failed, low, "fill failed"), svg.line(failed, "line failed")]
        parts += _marks(frame, curve, x)
        parts += _tips(frame, points, step, x, lambda one: _flow_tip(one))
        return svg.drawing(frame.width, frame.height, parts, words)

    return Markup(both(draw))


def _flow_tip(point: Point) -> str:
    if point["sent"] is None:
        return "not counted"
    return f"{count(point['sent'])} sent, {count(point['completed'])} completed, {count(point['failed_tries'])} failed"


def gauge(curve: Mapping[str, Any], name: str, thing: str, shown: Callable[[float], str] = svg.short) -> Markup:
    """One gauge over time: what waited, how old the oldest was, how long it took."""
    curve = _whole(curve)
    points, step = curve["points"], curve["step_s"]
    known = [point[name] for point in points if point[name] is not None]
    highest = f"at most {shown(max(known))}" if known else "nothing was measured"
    words = f"{thing} since {_when(points[0]['at'], step)} UTC: {highest}"

    def draw(frame: Frame) -> str:
        parts, x, y = _axes(frame, points, step, ceiling(known), shown)
        for run in _runs(points, name):
            line = [(x(place), y(points[place][name])) for place in run]
            parts += [svg.area(line, [(at, frame.low) for at, _ in line], "fill gauge"), svg.line(line, "line gauge")]
            if len(run) == 1:
                parts.append(svg.dot(*line[0], 2, "dot gauge"))
        parts += _marks(frame, curve, x)
        parts += _tips(frame, points, step, x, lambda one: "–" if one[name] is None else shown(one[name]))
        return svg.drawing(frame.width, frame.height, parts, words)

    return Markup(both(draw, HALF))


def _runs(points: Sequence[Point], name: str) -> list[list[int]]:
    """Places that follow one another and have a value: a gap stays a gap."""
    found: list[list[int]] = []
    for place, point in enumerate(points):
        if point[name] is None:
            continue
        if found and found[-1][-1] == place - 1:
            found[-1].append(place)
        else:
            found.append([place])
    return found


def _axes(
    frame: Frame, points: Sequence[Point], step: float, top: float, shown: Callable[[float], str]
) -> tuple[list[str], Callable[[float], float], Callable[[float], float]]:
    steps = svg.ticks(max(top, 1), 3)
    high = steps[-1]
    if shown is svg.short:  # there is no half of a message
        steps = [one for one in steps if one == int(one)]
    width = frame.inner / max(len(points) - 1, 1)

    def x(place: float) -> float:
        return frame.left + place * width

    def y(value: float) -> float:
        return frame.up(min(value, high * 1.06) / high)

    parts = [svg.rule(frame.left, y(one), frame.end, y(one)) for one in steps]
    parts += [svg.text(frame.left - 8, y(one) + 4, shown(one), "tick", "end") for one in steps]
    return [*parts, *_times(frame, points, step, x)], x, y


def _times(frame: Frame, points: Sequence[Point], step: float, x: Callable[[float], float]) -> list[str]:
    """Times below: no more than fit, on whole hours or days; the date only where the span is longer than a day."""
    span_s = len(points) * step
    distance = next((one for one in DISTANCES if one >= step and span_s / one <= frame.marks), DISTANCES[-1])
    shown = "%d %b" if distance >= 86_400 else "%H:%M" if span_s <= 86_400 else "%d %b %H:%M"
    parts = []
    for place, point in enumerate(points):
        if point["at"].timestamp() % distance == 0:
            at = x(place)
            anchor = "start" if at < frame.left + 20 else "end" if at > frame.end - 20 else "middle"
            parts.append(svg.text(at, frame.height - 8, point["at"].astimezone(UTC).strftime(shown), "tick", anchor))
    return parts


def _marks(frame: Frame, curve: Mapping[str, Any], x: Callable[[float], float]) -> list[str]:
    """A thin line for each act and each new version of workers."""
    first, step = curve["points"][0]["at"], curve["step_s"]
    parts = []
    for mark in curve.get("marks", ())[-40:]:
        at = x((mark["at"] - first).total_seconds() / step)
        if not frame.left <= at <= frame.end:
            continue
        by = f" by {mark['actor']}" if mark.get("actor") else ""
        kind = "deploy" if mark["what"] == "worker.version" else "act"
        tip = plain(f"{_when(mark['at'], 1)}: {mark['what']} {mark.get('entity') or ''}{by}")
        parts.append(svg.rule(at, frame.top - 6, at, frame.low, f"mark {kind}"))
        parts.append(svg.rect(at - 4, frame.top - 12, 8, 8, f"flag {kind}", tip, 'rx="2"'))
    return parts


def _tips(
    frame: Frame, points: Sequence[Point], step: float, x: Callable[[float], float], tell: Callable[[Point], str]
) -> list[str]:
    """What a mouse over each step is told."""
    width = frame.inner / max(len(points) - 1, 1)
    return [
        svg.rect(
            x(place) - width / 2,
            frame.top,
            width,
            frame.low - frame.top,
            "tip",
            f"{_when(point['at'], step)}: {tell(point)}",
        )
        for place, point in enumerate(points)
    ]


def _when(at: datetime, step: float) -> str:
    return svg.moment(at.astimezone(UTC).timestamp(), int(step))


def spark(values: Sequence[float | None], words: str, kind: str = "") -> Markup:
    """A line as small as a word. A list has a hundred of them: whole numbers, and no point that changes nothing."""
    known = [value for value in values if value is not None]
    high = max(known, default=0) or 1
    heights = [None if value is None else 50 - round(44 * value / high) for value in values]
    parts = []
    for run in _stretches(heights):
        drawn = " ".join(f"{place},{height}" for place, height in run)
        base = f"{run[-1][0]},52 {run[0][0]},52"
        parts.append(f'<polygon points="{drawn} {base}" class="fill"/><polyline points="{drawn}" class="line"/>')
    picture = svg.drawing(max(len(values) - 1, 1), 54, parts, words, f"spark {kind}".rstrip())
    return Markup(picture.replace("<svg ", '<svg preserveAspectRatio="none" ', 1))


def _stretches(heights: Sequence[int | None]) -> list[list[tuple[int, int]]]:
    """Points that follow one another, without those inside of a level part: a gap stays a gap."""
    found: list[list[tuple[int, int]]] = [[]]
    for place, height in enumerate(heights):
        run = found[-1]
        if height is None:
            if run:
                found.append([])
        elif len(run) > 1 and run[-1][1] == run[-2][1] == height:
            run[-1] = (place, height)
        else:
            run.append((place, height))
    return [run for run in found if run]
