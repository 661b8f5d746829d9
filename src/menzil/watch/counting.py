"""Until when the pulse has counted. What passed after that is not known: a zero would look like a queue at rest."""

from __future__ import annotations

from datetime import datetime, timedelta

from menzil.ops import pulse
from menzil.watch.finding import Run

#: The job pulse runs every 10 seconds. When it has not run for so long, no worker is at work, or the job fails.
LATE = timedelta(seconds=90)


def stopped(counted: datetime | None, now: datetime) -> datetime | None:
    """When counting stopped; None while it goes on, and where it never began."""
    return counted if counted is not None and now - counted > LATE else None


def counted_at(run: Run) -> datetime | None:
    """When the pulse was counted last; None where it never was, and for a role that may not know."""
    return run(pulse.counted_at()) if run(pulse.may_know_jobs()) else None


def uncounted_since(run: Run, now: datetime) -> datetime | None:
    """The same as stopped(), from the register of jobs."""
    return stopped(counted_at(run), now)
