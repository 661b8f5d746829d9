"""Who is at work, and who is missed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from menzil.ops import looking_messages, watch, why
from menzil.watch.channels import ENDPOINTS
from menzil.watch.finding import Run


def workers(run: Run) -> list[dict[str, Any]]:
    """Every worker the database has heard of."""
    return [asdict(one) for one in run(watch.get_worker_status())]


def takes(channels: list[str] | None) -> list[str]:
    """What a worker takes, in words: names of channels, and `all endpoints` for one that names none."""
    return ["all endpoints" if name == ENDPOINTS else name for name in ([ENDPOINTS] if channels is None else channels)]


def leases(run: Run) -> dict[str, Any]:
    """Return {"leases", "at_least"}: each worker with {"messages", "oldest_at", "runs_out_at"}, the busiest first.

    A consumer that gave no name is None. `at_least`: more is in flight than was looked at.
    """
    found = run(looking_messages.leases())
    return {"leases": found, "at_least": sum(one["messages"] for one in found) >= looking_messages.LEASES}


def unserved(run: Run) -> list[dict[str, Any]]:
    """Channels with waiting messages that no live worker takes."""
    names = ("channel", "is_endpoint", "waiting", "scheduled", "oldest_at", "held_by", "at_least")
    return [
        {name: row[name] for name in names}
        for row in run(why.channel_state())
        if row["workers"] == 0 and (row["waiting"] or row["scheduled"])
    ]
