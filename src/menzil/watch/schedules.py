"""Schedules: what each says in words, its next slots, and what became of its last ones."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from menzil.model.redact import Redactor
from menzil.ops import looking, schedules
from menzil.watch.cron import words
from menzil.watch.finding import Run
from menzil.watch.redaction import redacted

#: Slots ahead and past ones that are told, and how late a slot may be before it is called late.
AHEAD, PAST, LATE = 5, 8, timedelta(minutes=2)


def listed(
    run: Run, *, limit: int = 100, after: str = "", bodies: bool = True, redactor: Redactor | None = None
) -> dict[str, Any]:
    """Return {"schedules", "next_after", "as_of"}: each with {"words", "slots", "late", "past"}."""
    now = run(looking.now())
    rows = run(looking.schedules(limit + 1, after, bodies=bodies))
    shown = [
        {
            **redacted(row, redactor),
            "words": words(row["cron"]),
            "slots": slots(run, row["cron"], row["time_zone"], now),
            "late": not row["paused"] and row["next_at"] is not None and row["next_at"] < now - LATE,
            "past": run(schedules.schedule_slots(row["name"], PAST)),
        }
        for row in rows[:limit]
    ]
    return {"schedules": shown, "next_after": shown[-1]["name"] if len(rows) > limit else None, "as_of": now}


def slots(run: Run, cron: str, time_zone: str, after: datetime, many: int = AHEAD) -> list[dict[str, Any]]:
    """The next slots: {"at", "there"}; `there` is the wall clock of the zone."""
    try:
        zone: ZoneInfo | None = ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        zone = None
    found, at = [], after
    for _ in range(many):
        at = run(schedules.cron_next(cron, time_zone, at))
        found.append({"at": at, "there": _wall(at.astimezone(zone), after) if zone else None})
    return found


def _wall(at: datetime, now: datetime) -> str:
    """The wall clock, with the year unless it is this one: a slot may be years away."""
    return at.strftime("%a %d %b %H:%M" if at.year == now.astimezone(at.tzinfo).year else "%a %d %b %Y %H:%M")
