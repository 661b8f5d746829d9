"""Two days of a shop by the minute, as the job `pulse` would have written them."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

_COPY = """
copy menzil.pulse_minute (channel_id, at, waiting, in_flight, oldest_s, sent, completed, failed_tries, dead, ended_ms,
  try_ms)
from stdin"""

#: Percent of durations by class.
_TOOK = (0, 6, 30, 40, 12, 8, 3, 1, 0, 0, 0, 0)
#: Minutes ago between which the partner failed, once yesterday and once today.
_DOWN = (34, 0), (1425, 1400)


def write_pulse(conn: psycopg.Connection, traffic: Mapping[str, tuple[int, float]]) -> None:
    """Write a minute for each channel, and their sum."""
    conn.execute("delete from menzil.pulse_minute")
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    ids: dict[str, int] = dict(conn.execute("select name, id from menzil.channel").fetchall())
    dice = random.Random(11)
    partner = {"partner": (5, 1.0)}
    with conn.cursor() as cursor, cursor.copy(_COPY) as copy:
        # Some minutes ahead, too: a slow machine looks at the pages later, and charts end with the present.
        for minute in range(48 * 60, -20, -1):
            at = now - timedelta(minutes=minute)
            rows = [_minute(dice, name, rate, at, minute) for name, (rate, _) in {**traffic, **partner}.items()]
            for name, row in zip([*traffic, "partner"], rows, strict=True):
                copy.write_row((ids[name], at, *row.values()))
            copy.write_row((0, at, *_sum(rows).values()))


def _minute(dice: random.Random, name: str, rate: int, at: datetime, minute: int) -> dict[str, Any]:
    wave = 1 + 0.45 * math.sin((at.hour * 60 + at.minute) / 1440 * 2 * math.pi - 2.4)
    sent = max(round(rate * wave * dice.uniform(0.75, 1.25)), 0)
    since = next((first - minute for first, last in _DOWN if last < minute <= first), None)
    down = name == "partner" and since is not None
    done = 0 if down else max(sent - dice.choice((0, 0, 0, 1)), 0)
    failed = round(min(14 / (1 + (since or 0) / 6), 14) + dice.random()) if down else int(dice.random() < 0.12)
    ended = [round(done * part / 100 + dice.random() / 4) for part in _TOOK]
    return {
        "waiting": 4 + 2 * (since or 0) if down else dice.randrange(1, 2 + rate // 2),
        "in_flight": dice.randrange(0, 2 + rate // 4),
        "oldest_s": 60.0 * (since or 0) if down else dice.uniform(0.1, 2.5),
        "sent": sent,
        "completed": done,
        "failed_tries": failed,
        "dead": int(dice.random() < (0.12 if name == "crm" and minute < 182 else 0.006)),
        "ended_ms": ended,
        "try_ms": ended,
    }


def _sum(rows: list[dict[str, Any]]) -> dict[str, Any]:
    whole = {name: sum(row[name] for row in rows) for name in ("waiting", "in_flight", "oldest_s", "sent", "completed")}
    whole["oldest_s"] = max(row["oldest_s"] for row in rows)
    whole |= {name: sum(row[name] for row in rows) for name in ("failed_tries", "dead")}
    return whole | {
        name: [sum(part) for part in zip(*(row[name] for row in rows), strict=True)] for name in ("ended_ms", "try_ms")
    }
