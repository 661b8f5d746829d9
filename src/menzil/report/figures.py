"""Everything the page shows, as plain values: aggregates, of a size that does not depend on the history."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Row = dict[str, Any]

#: The most that a page shows of each, and the most that is ever held for it.
ENDPOINTS, ERRORS, INCIDENTS, LEADERS, BUCKETS = 40, 25, 100, 8, 180
#: A leader of "slowest" must have this many messages: one slow message does not make an endpoint slow.
ENOUGH = 20
#: Tries above this share one bar.
MOST_TRIES = 12
#: Lengths a bucket may have, in seconds.
WIDTHS = (1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 86_400, 604_800, 2_419_200, 29_030_400)


@dataclass(frozen=True)
class Slo:
    """A goal: this share of messages is delivered within so many seconds of being sent, or of their schedule."""

    seconds: float = 60.0
    share: float = 0.99


@dataclass(frozen=True)
class Figures:
    """One report. Rows have the columns of the frame they come from (menzil.spark.jobs.report.frames)."""

    source: str
    made_at: datetime
    slo: Slo
    #: Seconds of one bucket of `times` and `series`.
    width: int
    total: Row
    times: list[Row] = field(default_factory=list)
    endpoints: list[Row] = field(default_factory=list)
    #: How many endpoints there are in all; `endpoints` has the most troubled.
    endpoint_count: int = 0
    #: How many of all endpoints delivered nothing.
    silent_count: int = 0
    #: Per endpoint its buckets: (bucket, sent, completed).
    series: dict[str, list[Row]] = field(default_factory=dict)
    slowest: list[Row] = field(default_factory=list)
    noisiest: list[Row] = field(default_factory=list)
    hours: list[Row] = field(default_factory=list)
    retries: list[Row] = field(default_factory=list)
    errors: list[Row] = field(default_factory=list)
    error_count: int = 0
    #: By cause: dead letters that the database can still redrive. None: no database was asked.
    redrivable: dict[str, int] | None = None
    incidents: list[Row] = field(default_factory=list)
    #: None: no event log was given, so nothing is known about circuits.
    incident_count: int | None = None
    #: The total of the period before, which is as long as this one. None: this one has no beginning of its own.
    before: Row | None = None
    #: The same of each endpoint in `endpoints` that had messages then.
    endpoints_before: dict[str, Row] = field(default_factory=dict)


def bucket_width(seconds: float) -> int:
    """The shortest bucket that keeps the number of buckets readable."""
    return next((width for width in WIDTHS if seconds / width <= BUCKETS), WIDTHS[-1])


def due(row: Row) -> int:
    """Messages that should have been delivered: those that were not cancelled."""
    return int(row["sent"] - row["cancelled"])


def share(part: int, whole: int) -> float | None:
    """A part of a whole, or None when there is no whole."""
    return part / whole if whole else None


def is_silent(row: Row) -> bool:
    """Whether nothing was delivered of what should have been."""
    return due(row) > 0 and row["completed"] == 0


def trouble(row: Row) -> tuple[bool, int, int, int, str]:
    """Sorts endpoints: nothing delivered, most not delivered, most late, busiest."""
    undelivered = due(row) - row["completed"]
    return (not is_silent(row), -undelivered, -(due(row) - row["within"]), -row["sent"], row["channel"])


def period(start: datetime | None, end: datetime | None, now: datetime) -> tuple[datetime, datetime] | None:
    """The period before, as long as this one; None for a report that begins with the first message."""
    if start is None:
        return None
    until = min(end or now, now)
    return (start - (until - start), start) if until > start else None
