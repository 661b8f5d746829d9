"""What a load achieved: units over time, per worker."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from bench.readings import Reading


@dataclass
class Track:
    """One worker's run: when each of its steps ended, and how many units it moved."""

    seconds: float = 0.0
    cpu: float = 0.0
    ends: array[float] = field(default_factory=lambda: array("d"))
    units: array[int] = field(default_factory=lambda: array("q"))
    ran_dry: bool = False  # there was nothing left to do before the time was over


@dataclass
class Pace:
    """All workers of one run together."""

    tracks: list[Track]

    @property
    def rate(self) -> float:
        """Units per second."""
        return sum(sum(track.units) / track.seconds for track in self.tracks if track.seconds)

    @property
    def ran_dry(self) -> bool:
        return any(track.ran_dry for track in self.tracks)

    def reading(self) -> Reading:
        units = sum(sum(track.units) for track in self.tracks)
        return Reading(self.rate, sum(track.cpu for track in self.tracks) / max(1, units) * 1e6)

    def steps(self) -> list[float]:
        """How long each step took, sorted."""
        durations: list[float] = []
        for track in self.tracks:
            durations += [end - begin for begin, end in zip([0.0, *track.ends], track.ends, strict=False)]
        return sorted(durations)
