"""The circuit of an endpoint over time as a band, and its tries by class of status beneath."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from menzil.console.texts import plain
from menzil.console.words import day_clock, many, span
from menzil.report.charts import svg
from menzil.report.charts.frame import Frame, both
from menzil.watch.endpoints import CLASSES

STATES = {"closed": "closed", "half_open": "half-open", "open": "open", "rest": "resting", "unknown": "not known"}
#: The class of the drawing for each class of tries.
KINDS = dict(zip(CLASSES, ("ok", "moved", "refused", "broken", "silent"), strict=True))
#: Classes of tries by what they are called. A broker takes a message or not; only HTTP has a status.
_OF_HTTP = {name: name for name in CLASSES}
_OF_BROKERS = {"2xx": "taken", "no answer": "not taken"}


def classes(protocol: str | None) -> dict[str, str]:
    """What each class of tries is called at an endpoint of this protocol."""
    return _OF_HTTP if protocol in (None, "http") else _OF_BROKERS


#: Where the band is, and where the bars end.
BAND, HEIGHT = 18.0, 22.0


def timeline(found: Mapping[str, Any], called: Mapping[str, str] = _OF_HTTP) -> Markup:
    """Band, bars and marks of changes over the same time."""
    rows, start, end = found["tries"], found["from"], found["to"]
    whole = (end - start).total_seconds()
    total = {name: sum(row[name] for row in rows) for name in CLASSES}
    opened = sum(1 for band in found["bands"] if band["state"] == "open")
    told = ", ".join(f"{number:,} {called.get(name, name)}" for name, number in total.items() if number)
    words = (
        f"Circuit over the last {span(whole)}: now {STATES[found['bands'][-1]['state']]}, {many(opened, 'time')} open; "
        f"tries: {told or 'none'}"
    )

    def draw(frame: Frame) -> str:
        def x(at: datetime) -> float:
            share: float = (at - start).total_seconds() / whole
            return frame.left + frame.inner * min(max(share, 0.0), 1.0)

        parts = []
        for band in found["bands"]:
            tip = f"{STATES[band['state']]} {day_clock(band['from'])} to {day_clock(band['to'])} UTC"
            left, wide = x(band["from"]), x(band["to"]) - x(band["from"])
            parts.append(svg.rect(left, BAND, wide, HEIGHT, f"band {band['state']}", tip))
            if wide > 60:
                parts.append(svg.text(left + 7, BAND + 15, STATES[band["state"]], "bandword"))
        parts += _bars(frame, rows, found["step_s"], called)
        for one in found["marks"][-40:]:
            by = f" by {one['actor']}" if one["actor"] else ""
            tip = plain(f"{day_clock(one['at'])}: {one['what']}{by}")
            parts.append(svg.rule(x(one["at"]), 10, x(one["at"]), frame.low, "mark act"))
            parts.append(svg.rect(x(one["at"]) - 4, 4, 8, 8, "flag act", tip, 'rx="2"'))
        for place in range(5):
            at = start + (end - start) * place / 4
            anchor = ("start", "middle", "middle", "middle", "end")[place]
            said = at.astimezone(UTC).strftime("%H:%M" if whole <= 86_400 else "%d %b %H:%M")
            parts.append(svg.text(x(at), frame.height - 8, said, "tick", anchor))
        return svg.drawing(frame.width, frame.height, parts, words, "chart circuit")

    return Markup(both(draw))


def _bars(frame: Frame, rows: list[dict[str, Any]], step: float, called: Mapping[str, str]) -> list[str]:
    most = max((sum(row[name] for name in CLASSES) for row in rows), default=0) or 1
    top = BAND + HEIGHT + 12
    wide = frame.inner / max(len(rows), 1)
    ticks = [one for one in svg.ticks(most, 2) if one]
    scale = (frame.low - top) / max(most, ticks[-1] if ticks else 1)
    parts = [svg.rule(frame.left, frame.low, frame.end, frame.low)]
    for one in ticks:
        parts.append(svg.rule(frame.left, frame.low - one * scale, frame.end, frame.low - one * scale))
        parts.append(svg.text(frame.left - 8, frame.low - one * scale + 4, svg.short(one), "tick", "end"))
    for place, row in enumerate(rows):
        at = frame.low
        tip = ", ".join(f"{row[name]:,} {called.get(name, name)}" for name in CLASSES if row[name])
        for name in CLASSES:
            if row[name]:
                high = row[name] * scale
                at -= high
                left, said = frame.left + place * wide + 0.5, f"{day_clock(row['at'])}, {span(step)}: {tip}"
                parts.append(svg.rect(left, at, max(wide - 1, 0.8), high, f"bar {KINDS[name]}", said))
    return parts
