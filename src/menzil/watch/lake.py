"""The lake as the database knows it: how far its readers are behind."""

from __future__ import annotations

from typing import Any

from menzil.ops import lake as archive
from menzil.ops import looking, looking_feed, runs
from menzil.watch.finding import Run


def consumers(run: Run) -> list[dict[str, Any]]:
    """Readers of the change feed, with {"lag_s"}: the age of the oldest row that a reader has not had, 0 for none."""
    now = run(looking.now())
    return [
        {**row, "lag_s": max((now - row["behind_since"]).total_seconds(), 0.0) if row["behind_since"] else 0.0}
        for row in run(looking_feed.consumers())
    ]


def lake(run: Run, *, limit: int = 50) -> dict[str, Any]:
    """Return {"consumers", "runs", "last"}: readers with their lag, newest runs, the last of each kind that ended."""
    found = run(runs.pipeline_runs(limit))
    last: dict[str, Any] = {}
    for one in found:
        if one["ended_at"] is not None:
            last.setdefault(one["kind"], one)
    return {"consumers": consumers(run), "runs": found, "last": last}


def months(run: Run) -> list[dict[str, Any]]:
    """Months of the archive in the database: {"month", "open"}. One that was dropped after its export is not here."""
    return [{"month": one.starts_at, "open": one.is_open} for one in run(archive.archive_months())]
