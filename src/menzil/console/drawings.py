"""Drawings of how things stand: limits, lanes, what waits by priority, and the life of one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from menzil.console.texts import plain
from menzil.console.words import capped, day_clock, many, span
from menzil.report.charts import svg

#: Colours that lanes have; more channels than that share them, and the name is always there.
COLOURS = 8

#: Slots that are drawn one by one; more become a bar.
MOST_SLOTS = 60

#: What waiting looks like.
HATCHED = (
    '<defs><pattern id="wait" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" class="waitfill"/><rect width="2" height="6" class="waitline"/></pattern></defs>'
)


def lane_classes(turns: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The colour of each channel, in the order in which they come."""
    names = dict.fromkeys(turn["channel"] for turn in turns)
    return {name: f"lane{place % COLOURS}" for place, name in enumerate(names)}


def slots(used: int, limit: int) -> Markup:
    """Concurrency as slots: the taken ones are filled."""
    words = f"{used} of {many(limit, 'slot')} taken"
    if limit > MOST_SLOTS:
        return _bar(used, limit, words)
    wide = min(limit, 20)
    rows = -(-limit // wide)
    parts = [
        svg.rect(
            1 + place % wide * 21, 1 + place // wide * 21, 17, 17, "slot taken" if place < used else "slot free",
            f"slot {place + 1}: {'taken' if place < used else 'free'}", 'rx="4"',
        )
        for place in range(limit)
    ]  # fmt: skip
    over = [svg.text(wide * 21 + 6, 14, f"+{used - limit}", "label over")] if used > limit else []
    return Markup(svg.drawing(20 * 21 + 40, rows * 21, [*parts, *over], words, "chart slots"))


def _bar(used: int, limit: int, words: str) -> Markup:
    parts = [
        svg.rect(0, 2, 440, 14, "slot free", "", 'rx="4"'),
        svg.rect(0, 2, 440 * min(used / limit, 1), 14, "slot taken", words, 'rx="4"'),
    ]
    return Markup(svg.drawing(460, 18, parts, words, "chart slots"))


def ruler(state: Mapping[str, Any], leases: Sequence[Mapping[str, Any]], now: datetime) -> Markup:
    """The window of a rate limit as a ruler from its begin to now, the leases in it, and the next free moment."""
    seconds, used, limit = float(state["rate_seconds"]), state["rate_used"], state["rate_limit"]
    words = f"{used} of {limit} leases in the last {span(seconds)}"
    free = state["next_slot_at"]
    ahead = max((free - now).total_seconds(), 0) if free else 0
    words += f"; the next one is free in {span(ahead)}" if used >= limit and free else "; one is free now"
    width, left = 560.0, 8.0
    scale = (width - 60) / (seconds + max(ahead, seconds * 0.12))

    def x(at: datetime) -> float:
        return left + (seconds + (at - now).total_seconds()) * scale

    parts = [svg.rect(left, 22, seconds * scale, 22, "window", f"the last {span(seconds)}", 'rx="4"')]
    most = max((one["messages"] for one in leases), default=1)
    for one in leases:
        height = 6 + 16 * one["messages"] / most
        tip = f"{day_clock(one['at'])}: {many(one['messages'], 'lease')}"
        parts.append(svg.rect(max(x(one["at"]) - 1.5, left), 44 - height, 3, height, "lease", tip, 'rx="1"'))
    for place in range(11):
        at = left + seconds * scale * place / 10
        parts.append(svg.rule(at, 44, at, 50 if place % 5 else 54, "grid"))
    parts.append(svg.text(left, 68, f"−{span(seconds)}", "tick"))
    parts.append(svg.rule(left + seconds * scale, 14, left + seconds * scale, 56, "now"))
    parts.append(svg.text(left + seconds * scale, 68, "now", "tick", "middle"))
    if used >= limit and free:
        at = left + (seconds + ahead) * scale
        parts.append(svg.rule(at, 14, at, 56, "free"))
        parts.append(svg.text(at, 10, f"free in {span(ahead)}", "label", "end" if at > width - 70 else "middle"))
    return Markup(svg.drawing(width, 72, parts, words, "chart ruler"))


def priorities(by_priority: Mapping[str, int], total: int) -> Markup:
    """What waits, by priority, as one stacked bar; the highest priority comes first."""
    rows = sorted(((int(name), number) for name, number in by_priority.items() if number), reverse=True)
    whole = sum(number for _, number in rows) or 1
    words = ", ".join(f"{capped(number)} of priority {name}" for name, number in rows) or f"{capped(total)} wait"
    parts, at = [], 0.0
    for name, number in rows:
        width = 100 * number / whole
        parts.append(
            svg.rect(at, 0, max(width - 0.6, 0.6), 6, f"p{min(max(name, 0), 9)}", f"priority {name}: {capped(number)}")
        )
        at += width
    return Markup(
        svg.drawing(100, 6, parts, words, "chart stack").replace("<svg ", '<svg preserveAspectRatio="none" ', 1)
    )


def life(rows: Sequence[Mapping[str, Any]], message: Mapping[str, Any], now: datetime) -> Markup:
    """The life of one message to scale: waits hatched, tries solid and red or green, and a line for now."""
    own = [row for row in rows if row["message_id"] == message["id"]]
    start = message["created_at"]
    ended = message.get("ended_at")
    later = [row["at"] for row in own if row["at"] > now]
    last = ended or max([now, *later])
    whole = max((last - start).total_seconds(), 0.001)
    width, left, top = 1040.0, 10.0, 26.0
    inner = width - 2 * left

    def x(at: datetime) -> float:
        share: float = (at - start).total_seconds() / whole
        return left + inner * min(max(share, 0.0), 1.0)

    tries = _tries(own, now)
    words = f"From {day_clock(start)} to {day_clock(last)} UTC, {span(whole)}: {many(len(tries), 'try', 'tries')}"
    parts = [HATCHED]
    parts.append(svg.rect(left, top, inner, 26, "waits", f"waited from {day_clock(start)}", 'rx="4" fill="url(#wait)"'))
    for one in tries:
        begin, end = x(one["at"]), x(one["end"])
        tip = plain(f"try {one['attempt']}: {one['outcome']}, {span((one['end'] - one['at']).total_seconds())}")
        parts.append(svg.rect(begin, top, max(end - begin, 4), 26, f"try {one['kind']}", tip, 'rx="2"'))
        if len(tries) <= 20:
            parts.append(svg.text((begin + max(end, begin + 4)) / 2, top + 40, str(one["attempt"]), "tick", "middle"))
    parts.append(svg.rule(left, top - 8, left, top + 30, "edge"))
    parts.append(svg.text(left, top - 12, f"sent {day_clock(start)}", "label"))
    if ended:
        parts.append(svg.rule(left + inner, top - 8, left + inner, top + 30, "edge"))
        parts.append(svg.text(left + inner, top - 12, f"{message['status']} {day_clock(ended)}", "label", "end"))
    else:
        at = x(now)
        parts.append(svg.rule(at, top - 8, at, top + 34, "now"))
        near_end = at > width - 60
        parts.append(svg.text(at, top - 12, "now", "label", "end" if near_end else "middle"))
        for due in later[:1]:
            parts.append(svg.rule(x(due), top - 4, x(due), top + 30, "due"))
            parts.append(svg.text(x(due), top + 40, f"due {day_clock(due)}", "tick", "end"))
    return Markup(svg.drawing(width, top + 48, parts, words, "chart life"))


def _tries(own: Sequence[Mapping[str, Any]], now: datetime) -> list[dict[str, Any]]:
    found = []
    for row in own:
        if row["what"].startswith("try_") or row["what"] == "in_flight":
            outcome = row["what"].removeprefix("try_")
            took = timedelta(milliseconds=row["duration_ms"] or 0)
            end = now if outcome == "in_flight" else row["at"] + took
            kind = {"completed": "good", "in_flight": "busy", "deferred": "idle"}.get(outcome, "bad")
            shown = outcome.replace("_", " ")
            found.append({"at": row["at"], "end": end, "attempt": row["attempt"], "outcome": shown, "kind": kind})
    return found


def lanes(turns: Sequence[Mapping[str, Any]]) -> Markup:
    """The next leases as coloured lanes: a row for each channel, a column for each turn."""
    names, kinds = list(dict.fromkeys(turn["channel"] for turn in turns)), lane_classes(turns)
    longest = 24
    left, step = 170.0, min(860.0 / max(len(turns), 1), 40.0)
    parts = []
    for place, name in enumerate(names):
        y = 8 + place * 24
        shown = plain(name)
        parts.append(
            svg.text(left - 10, y + 13, shown if len(shown) <= longest else shown[: longest - 1] + "…", "label", "end")
        )
        parts.append(svg.rule(left, y + 9, left + step * len(turns), y + 9, "grid"))
    before = None
    for place, turn in enumerate(turns):
        y = 8 + names.index(turn["channel"]) * 24
        tip = plain(
            f"turn {turn['turn']}: {turn['channel']}, priority {turn['priority']}, message {turn['message_id']}"
        )
        parts.append(
            svg.rect(left + place * step + 1, y, max(step - 2, 2), 18, f"turn {kinds[turn['channel']]}", tip, 'rx="3"')
        )
        if turn["priority"] != before:
            at = left + place * step
            if place:
                parts.append(svg.rule(at, 2, at, 8 + len(names) * 24, "cut"))
            parts.append(svg.text(at + 3, 8 + len(names) * 24 + 12, f"p{turn['priority']}", "tick"))
            before = turn["priority"]
    height = 8 + len(names) * 24 + 20
    words = f"The next {many(len(turns), 'lease')} go to {many(len(names), 'channel')}"
    return Markup(svg.drawing(left + 870, height, parts, words, "chart lanes"))
