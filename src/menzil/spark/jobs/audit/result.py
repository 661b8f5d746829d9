"""What an audit found."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

#: Every kind of violation, with the promise that it breaks. The order is that of the report.
KINDS = {
    "lost": "What was acknowledged is in the queue or in the history",
    "twice": "No message is in the history twice",
    "two-ends": "A message ends once",
    "ended-and-live": "An ended message is not in the queue",
    "origin": "A redriven or replayed message has its original",
    "attempts": "Tries are numbered 1 to n without a gap",
    "outcome": "Status, tries and times of a message agree",
    "early": "Nothing is delivered before its schedule",
    "late": "Nothing is delivered after its expiry",
    "retries": "Retries stay within their budget",
    "key-overlap": "One message of an ordering key is at work at a time",
    "key-order": "Messages of an ordering key go in the order of their ids",
    "concurrency": "No channel exceeds its concurrency limit",
    "rate": "No channel exceeds its rate limit",
}


@dataclass(frozen=True)
class Violation:
    """One broken promise: which message, against which other one, when, and what was seen."""

    kind: str
    message_id: int
    other_id: int | None
    channel: str | None
    at: datetime | None
    detail: str


@dataclass(frozen=True)
class Check:
    """One promise: how many violations, or why it could not be checked."""

    kind: str
    promise: str
    violations: int
    note: str | None = None
    skipped: bool = False


@dataclass(frozen=True)
class AuditReport:
    """The whole result; `violations` holds samples of each kind, `checks` the exact counts."""

    counts: dict[str, int]
    first_at: datetime | None
    last_at: datetime | None
    checks: list[Check]
    violations: list[Violation]
    notes: list[str] = field(default_factory=list)
    #: Messages of the samples, by id, each with its `attempts`, for telling what happened.
    stories: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether every promise that could be checked was kept."""
        return not any(check.violations for check in self.checks)

    def found(self, kind: str) -> list[int]:
        """The ids of the sampled violations of a kind, in order."""
        return sorted(violation.message_id for violation in self.violations if violation.kind == kind)
