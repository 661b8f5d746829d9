"""A history that can be checked by hand, as one process and as Spark count it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from menzil.report import Figures, Slo, tally
from menzil.report.incidents import Turn
from menzil.report.tally import Ended, Span

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
EVIL = """<script>alert(1)</script>"><img src=x onerror=alert(2)>&'"""

#: channel, status, created, scheduled and first leased in seconds, tries, ended in seconds, error.
Given = tuple[str, str, float, float | None, float | None, int, float, str | None]

ROWS: list[Given] = [
    ("billing", "completed", n * 60.0, None, n * 60.0 + 1, 1, n * 60.0 + 1 + n, None) for n in range(100)
]
ROWS += [
    ("billing", "failed", 10.0, None, 11.0, 3, 500.0, "[RETRYABLE] HTTP 503 in 12 ms"),
    ("billing", "failed", 11.0, None, 12.0, 3, 600.0, "[RETRYABLE] HTTP 503 in 1450 ms"),
    ("billing", "cancelled", 12.0, None, None, 0, 13.0, None),
    ("billing", "expired", 12.0, None, None, 0, 73.0, None),
    # Sent long before its time: its clock starts at the schedule.
    ("later", "completed", 0.0, 3000.0, 3002.0, 2, 3005.0, None),
    (EVIL, "failed", 86_400.0 * 2, None, 86_400.0 * 2 + 1, 1, 86_400.0 * 2 + 2, f"[PERMANENT] {EVIL} 9"),
]
#: Kind, channel, seconds.
TURNS = [
    ("circuit.opened", "billing", 40_000), ("circuit.opened", "billing", 40_031),
    ("circuit.closed", "billing", 40_090), ("circuit.opened", "later", 50_000),
]  # fmt: skip
GOAL = Slo(60, 0.9)


def at(seconds: float | None) -> datetime | None:
    return None if seconds is None else MONDAY + timedelta(seconds=seconds)


def _micros(seconds: float | None) -> int | None:
    return None if seconds is None else int((MONDAY.timestamp() + seconds) * 1_000_000)


def ended(rows: list[Given], first: int = 1) -> list[Ended]:
    return [
        Ended(n, channel, status, _micros(created) or 0, _micros(scheduled), _micros(leased), _micros(end) or 0, tries,
              error)
        for n, (channel, status, created, scheduled, leased, tries, end, error) in enumerate(rows, first)
    ]  # fmt: skip


def counted(rows: list[Given], before: list[Given] | None = None, source: str = "a lake", **more: object) -> Figures:
    messages = ended(rows)
    times = [message.created_at for message in messages]
    span = Span(len(times), min(times, default=0), max(times, default=0))
    earlier = None if before is None else ended(before, 1_000_000)
    return tally(messages, span, source=source, before=earlier, **more)  # type: ignore[arg-type]


def turns(given: list[tuple[str, str, int]]) -> list[Turn]:
    return [Turn(n, channel, kind, MONDAY + timedelta(seconds=at)) for n, (kind, channel, at) in enumerate(given, 1)]
