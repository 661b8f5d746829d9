"""Small charts: a sparkline, a heat map, bars, and when circuits were open."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from menzil.report.charts import svg
from menzil.report.charts.frame import Frame, ceiling
from menzil.report.charts.times import filled

Row = dict[str, Any]
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def sparkline(rows: Sequence[Row], first: int, last: int, width: int) -> str:
    """What an endpoint was sent over the window, as small as a word; red ticks where something was not delivered."""
    ends = [row for row in (rows[0], rows[-1]) if row] if rows else []
    edge = [{"bucket": first}] if not ends or ends[0]["bucket"] > first else []
    tail = [{"bucket": last}] if not ends or ends[-1]["bucket"] < last else []
    dots = filled([*edge, *rows, *tail], width)
    high = ceiling([row.get("sent", 0) for row in dots]) or 1
    x = [4 + 152 * place / max(len(dots) - 1, 1) for place in range(len(dots))]
    upper = [(at, 28 - 24 * min(row.get("sent", 0) / high, 1)) for at, row in zip(x, dots, strict=True)]
    parts = [svg.area(upper, [(at, 28.0) for at in x], "sparkfill"), svg.line(upper, "spark")]
    sent = [0, *(row.get("sent", 0) for row in dots), 0]
    for place, (at, row) in enumerate(zip(x, dots, strict=True)):
        if sent[place + 1] and not sent[place] and not sent[place + 2]:  # a bucket alone: a line would be a needle
            parts.append(svg.dot(at, upper[place][1], 2.2, "sparkdot"))
        missed = row.get("sent", 0) - row.get("completed", 0)
        if missed > 0.02 * row.get("sent", 0):
            parts.append(svg.rule(at, 29.0, at, 32.0, "sparkbad"))
    return svg.drawing(160, 33, parts, "Messages over time", "sparkline")


def heat(rows: Sequence[Row]) -> str:
    """Weekday by hour: the more messages, the stronger the colour."""
    known = {(row["weekday"], row["hour"]): row for row in rows}
    high = ceiling([row["sent"] for row in rows]) or 1
    parts = []
    for day, name in enumerate(DAYS):
        parts.append(svg.text(34, 18 + day * 25 + 15, name, "tick", "end"))
        for hour in range(24):
            row = known.get((day, hour))
            sent, bad = (row["sent"], row["undelivered"]) if row else (0, 0)
            tip = f"{name} {hour:02}:00 UTC: {sent:,} sent, {bad:,} not delivered"
            share = min(sent / high, 1) ** 0.6 if sent else 0
            more = f'rx="3" fill-opacity="{0.12 + 0.88 * share:.2f}"' if sent else 'rx="3"'
            parts.append(svg.rect(42 + hour * 20, 18 + day * 25, 18, 22, "warm" if sent else "empty", tip, more))
            if sent and bad / sent > 0.05:
                parts.append(svg.dot(51 + hour * 20, 29 + day * 25, 3, "ring"))
    parts += [svg.text(51 + hour * 20, 210, f"{hour:02}", "tick", "middle") for hour in range(0, 24, 3)]
    return svg.drawing(526, 218, parts, "Messages by weekday and hour")


def tries(rows: Sequence[Row], most: int) -> str:
    """How many messages took how many tries."""
    shown = [row for row in rows if row["tries"] > 0]
    total = sum(row["messages"] for row in shown) or 1
    high = max((row["messages"] for row in shown), default=1)
    step = 24 if len(shown) > 7 else 28
    parts = []
    for place, row in enumerate(shown):
        top = 8 + place * step
        name = f"{row['tries']}+" if row["tries"] >= most else str(row["tries"])
        word = f"{name} try" if name == "1" else f"{name} tries"
        full = 280 * row["messages"] / high
        good = full * row["completed"] / row["messages"]
        number = f"{row['messages']:,} message{'' if row['messages'] == 1 else 's'}"
        tip = f"{word}: {number}, {row['completed']:,} delivered, {row['failed']:,} dead"
        parts.append(svg.text(84, top + 15, word, "tick", "end"))
        parts.append(svg.rect(92, top, max(good, 0.8 if row["completed"] else 0), step - 8, "good", tip, 'rx="2"'))
        parts.append(
            svg.rect(92 + good, top, max(full - good, 0.8 if row["failed"] else 0), step - 8, "bad", tip, 'rx="2"')
        )
        share = 100 * row["messages"] / total
        parts.append(svg.text(98 + max(full, 1), top + 15, f"{svg.short(row['messages'])} · {share:.3g} %", "tick"))
    return svg.drawing(526, max(8 + len(shown) * step, 60), parts, "Messages by number of tries")


def bars(rows: Sequence[tuple[str, float, str]], kind: str) -> str:
    """Names with a bar and its value."""
    high = max((value for _, value, _ in rows), default=0) or 1
    parts = []
    for place, (name, value, word) in enumerate(rows):
        top = 4 + place * 30
        parts.append(svg.text(0, top + 10, name if len(name) <= 30 else name[:29] + "…", "label"))
        parts.append(svg.text(526, top + 10, word, "value", "end"))
        parts.append(svg.rect(0, top + 15, 526, 5, "rail", "", 'rx="2.5"'))
        parts.append(svg.rect(0, top + 15, max(526 * value / high, 3), 5, kind, f"{name}: {word}", 'rx="2.5"'))
    return svg.drawing(526, 4 + len(rows) * 30, parts, "Endpoints compared")


def incidents(frame: Frame, rows: Sequence[Row], first: float, last: float, width: int) -> str:
    """A lane per endpoint, red where its circuit was open."""
    edge = min(190.0, frame.width * 0.3)
    letters = int(edge / 7)
    names = list(dict.fromkeys(row["channel"] for row in rows))[:12]
    span = max(last - first, 1)

    def x(epoch: float) -> float:
        return edge + (frame.end - edge) * min(max((epoch - first) / span, 0), 1)

    parts = []
    for place, name in enumerate(names):
        top = 6 + place * 26
        short = name if len(name) <= letters else name[: letters - 1] + "…"
        parts.append(svg.text(edge - 10, top + 13, short, "label", "end"))
        parts.append(svg.rect(edge, top + 5, frame.end - edge, 8, "rail", "", 'rx="4"'))
        for row in rows:
            if row["channel"] == name:
                begin, end = _epoch(row["opened_at"]), _epoch(row["closed_at"]) if row["closed_at"] else last
                lasted = svg.seconds(row["seconds"]) if row["seconds"] is not None else "still open"
                tip = f"{name}: open from {svg.moment(begin, 60)}, {lasted}"
                parts.append(svg.rect(x(begin), top + 2, max(x(end) - x(begin), 3), 14, "bad", tip, 'rx="3"'))
    low = 6 + len(names) * 26 + 14
    marks = [(first, "start"), ((first + last) / 2, "middle"), (last, "end")]
    marks = marks if frame.marks > 4 else [marks[0], marks[2]]
    parts += [svg.text(x(at), low, svg.moment(at, width), "tick", anchor) for at, anchor in marks]
    return svg.drawing(frame.width, low + 6, parts, "When circuits were open")


def _epoch(at: datetime) -> float:
    return at.astimezone(UTC).timestamp()
