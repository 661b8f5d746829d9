"""What became of a lease that was settled or extended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """One word per lease; a str, so it prints and compares as the word the database said."""

    SETTLED = "settled"
    STALE = "stale"
    UNKNOWN = "unknown"
    RETRY = "retry"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class LeaseOutcome:
    """The answer for one lease of a batch."""

    id: int
    outcome: Outcome

    @property
    def ok(self) -> bool:
        """Whether the call did what it was asked: the lease was still ours."""
        return self.outcome not in (Outcome.STALE, Outcome.UNKNOWN)
