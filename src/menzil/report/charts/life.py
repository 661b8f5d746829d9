"""The life of one message to scale: waits hatched, tries solid, and where now is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from menzil.report.charts import svg

WIDTH, HEIGHT, LEFT, RIGHT = 960.0, 74.0, 8.0, 952.0
_TOP, _THICK = 22.0, 22.0
#: The least width of a try, so that a millisecond beside an hour is seen.
_LEAST = 2.5


def life(message: Mapping[str, Any], attempts: Sequence[Mapping[str, Any]], now: datetime, mark: str = "life") -> str:
    """Draw from the sending to the end, or to now. `mark` makes the ids of this drawing its own on a page."""
    start: datetime = message["created_at"]
    live = message["ended_at"] is None
    ends = [attempt["ended_at"] for attempt in attempts if attempt["ended_at"] is not None]
    end = max([start, *ends, now if live else message["ended_at"]])
    whole = max((end - start).total_seconds(), 1e-6)

    def x(at: datetime) -> float:
        share: float = (at - start).total_seconds() / whole
        return LEFT + (RIGHT - LEFT) * min(max(share, 0.0), 1.0)

    hatch = (
        f'<defs><pattern id="{mark}-wait" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="6" height="6" class="rail"/>'
        '<line x1="0" y1="0" x2="0" y2="6" class="hatch"/></pattern></defs>'
    )
    parts = [hatch, svg.rect(LEFT, _TOP, RIGHT - LEFT, _THICK, "wait", "waits", f'fill="url(#{mark}-wait)"')]
    parts += [_try(attempt, x, end) for attempt in attempts]
    if live and message["leased_at"] is not None and message["status"] == "processing":
        flying = {"attempt": message["num_attempts"], "outcome": "processing", "leased_at": message["leased_at"]}
        parts.append(_try({**flying, "ended_at": None}, x, end))
    parts.append(svg.text(LEFT, 14, f"sent {_time(start)}", "tick"))
    word = "now" if live else str(message["status"])
    parts += [
        svg.rule(RIGHT, _TOP - 6, RIGHT, _TOP + _THICK + 6, "nowline"),
        svg.text(RIGHT, 14, f"{word} {_time(end)}", "tick", "end"),
        svg.text(LEFT, _TOP + _THICK + 20, svg.seconds(whole) + " in all", "tick"),
    ]
    return svg.drawing(WIDTH, HEIGHT, parts, _words(message, attempts, whole))


def _try(attempt: Mapping[str, Any], x: Callable[[datetime], float], end: datetime) -> str:
    first, last = x(attempt["leased_at"]), x(attempt["ended_at"] or end)
    width = max(last - first, _LEAST)
    kind = {"completed": "good", "failed": "bad", "recovered": "bad", "processing": "slow"}
    tip = f"try {attempt['attempt']}: {attempt['outcome']} at {_time(attempt['leased_at'])}"
    return svg.rect(min(first, RIGHT - width), _TOP, width, _THICK, kind.get(attempt["outcome"], "mute"), tip)


def _words(message: Mapping[str, Any], attempts: Sequence[Mapping[str, Any]], whole: float) -> str:
    tries = "no try" if not attempts else "1 try" if len(attempts) == 1 else f"{len(attempts)} tries"
    return f"Message {message['id']}: {message['status']}, {tries}, {svg.seconds(whole)} from its sending on."


def _time(at: datetime) -> str:
    return at.strftime("%d %b %H:%M:%S")
