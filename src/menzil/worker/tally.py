"""What a worker has done so far."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Tally:
    """Counts of settled outcomes, and of what never got so far."""

    delivered: int = 0
    failed: int = 0  # all failures, those that are tried again and those that are not
    dead: int = 0  # of these, dead letters
    deferred: int = 0
    handed_back: int = 0
    lost: int = 0  # leases that were lost before they could be settled

    def facts(self) -> dict[str, int]:
        """Return what the summary says."""
        return asdict(self)
