"""What a worker has done so far."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import asdict, dataclass
from typing import Any

from menzil.ops.pulse import BOUNDS_MS

_SECONDS = [bound / 1000 for bound in BOUNDS_MS]


@dataclass(slots=True)
class Tally:
    """Counts of settled outcomes, and of what never got so far."""

    delivered: int = 0
    failed: int = 0  # all failures, those that are tried again and those that are not
    dead: int = 0  # of these, dead letters
    deferred: int = 0
    handed_back: int = 0
    lost: int = 0  # leases that were lost before they could be settled

    def settles(self) -> dict[str, int]:
        """Return what came out, each message once."""
        return {
            "completed": self.delivered,
            "failed": self.failed,
            "deferred": self.deferred,
            "handed_back": self.handed_back,
            "lost": self.lost,
        }

    def facts(self) -> dict[str, int]:
        """Return what the summary says."""
        return asdict(self)


class Tries:
    """How long tries took, by channel, until the registry has handed it over.

    What was handed over and never acknowledged is handed over again under the same number, so that it counts once.
    """

    def __init__(self) -> None:
        self._counters: dict[str, list[int]] = {}
        self._number = 0
        self._on_its_way: dict[str, Any] | None = None

    def add(self, channel: str, seconds: float, count: int = 1) -> None:
        """Count tries that took so long each."""
        counters = self._counters.get(channel)
        if counters is None:
            counters = self._counters[channel] = [0] * (len(_SECONDS) + 1)
        counters[bisect_right(_SECONDS, seconds)] += count

    def hand_over(self) -> dict[str, Any] | None:
        """Return what menzil.worker_heartbeat is to be told; None when there is nothing."""
        if self._on_its_way is None and self._counters:
            self._number += 1
            self._on_its_way = {"number": self._number, "try_ms": self._counters}
            self._counters = {}
        return self._on_its_way

    def acknowledged(self) -> None:
        """The database has it."""
        self._on_its_way = None
