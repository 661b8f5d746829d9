"""Everything the page shows, as plain values: aggregates, of a size that does not depend on the history."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Slo:
    """A goal: this share of messages is delivered within so many seconds of being sent, or of their schedule."""

    seconds: float = 60.0
    share: float = 0.99


@dataclass(frozen=True)
class Figures:
    """One report. Rows have the columns of the frame they come from (frames.py)."""

    source: str
    made_at: datetime
    slo: Slo
    #: Seconds of one bucket of `times` and `series`.
    width: int
    total: Row
    times: list[Row] = field(default_factory=list)
    endpoints: list[Row] = field(default_factory=list)
    #: How many endpoints there are in all; `endpoints` has the busiest.
    endpoint_count: int = 0
    #: Per endpoint its buckets: (bucket, sent, completed).
    series: dict[str, list[Row]] = field(default_factory=dict)
    slowest: list[Row] = field(default_factory=list)
    noisiest: list[Row] = field(default_factory=list)
    hours: list[Row] = field(default_factory=list)
    retries: list[Row] = field(default_factory=list)
    errors: list[Row] = field(default_factory=list)
    error_count: int = 0
    incidents: list[Row] = field(default_factory=list)
    #: None: no event log was given, so nothing is known about circuits.
    incident_count: int | None = None
