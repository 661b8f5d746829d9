"""Readings of one load over the repeats, each beside the reading it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean, median


@dataclass(frozen=True)
class Reading:
    """One measurement: units per second, and microseconds of processor time per unit, clients and server together."""

    rate: float
    cpu: float


def between(before: Reading, after: Reading) -> Reading:
    """What a calibration would have read between these two."""
    return Reading((before.rate + after.rate) / 2, (before.cpu + after.cpu) / 2)


@dataclass
class Series:
    """A load against its base, repeat by repeat."""

    ours: list[Reading] = field(default_factory=list)
    base: list[Reading] = field(default_factory=list)

    def add(self, ours: Reading, base: Reading) -> None:
        self.ours.append(ours)
        self.base.append(base)

    def ratios(self) -> list[float]:
        return [one.rate / other.rate for one, other in zip(self.ours, self.base, strict=True)]

    def by_cpu(self) -> float:
        """The ratio by processor time, from the lowest reading of each side: what others do only adds to a reading."""
        return min(each.cpu for each in self.base) / min(each.cpu for each in self.ours)

    def company(self, ours: str, base: str) -> dict[str, Sequence[float]]:
        """The plain rates, and the same ratio told by processor time, which a busy machine changes less."""
        cpu = [other.cpu / one.cpu for one, other in zip(self.ours, self.base, strict=True) if one.cpu]
        return {
            ours: [mean(reading.rate for reading in self.ours)],
            base: [mean(reading.rate for reading in self.base)],
            "by CPU": [median(cpu)] if cpu else [],
        }
