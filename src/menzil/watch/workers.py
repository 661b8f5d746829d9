"""Who is at work, and who is missed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from menzil.ops import watch, why
from menzil.watch.finding import Run


def workers(run: Run) -> list[dict[str, Any]]:
    """Every worker the database has heard of."""
    return [asdict(one) for one in run(watch.get_worker_status())]


def unserved(run: Run) -> list[dict[str, Any]]:
    """Channels with waiting messages that no live worker takes."""
    names = ("channel", "is_endpoint", "waiting", "scheduled", "oldest_at", "held_by", "at_least")
    return [
        {name: row[name] for name in names}
        for row in run(why.channel_state())
        if not row["workers"] and (row["waiting"] or row["scheduled"])
    ]
