"""Which channels have a name in the metrics: the busiest, and once named, named until the process ends.

A counter must not fall. If a channel changed from OTHER to a name of its own, the counter of OTHER would lose what the
channel had counted, and Prometheus would take that for a restart. So a channel stays where it was first counted while
this process lives, and what a dropped channel had counted is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from menzil.ops.scraping import Total
from menzil.telemetry.metric_names import MOST, OTHER

_NUMBERS = ("sent", "completed", "dead", "expired", "cancelled", "deferred", "recovered")
_COUNTERS = ("failed", "ended_ms", "try_ms")
NOTHING = Total(None, 0, 0, 0, 0, 0, 0, 0, [0] * 6, [0] * 12, [0] * 12)


def plus(one: Total, other: Total, sign: int = 1) -> Total:
    """The sum of two, or their difference; never less than nothing."""
    numbers = [max(0, getattr(one, name) + sign * getattr(other, name)) for name in _NUMBERS]
    counters = [
        [max(0, a + sign * b) for a, b in zip(getattr(one, name), getattr(other, name), strict=True)]
        for name in _COUNTERS
    ]
    return Total(one.channel, *numbers, *counters)


class Named:
    """The channels with a name of their own."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._last: dict[str, Total] = {}  # by name, as it was counted last
        self._gone = NOTHING  # of named channels that were dropped
        self._others: set[str] = set()  # channels that had no name when they were first seen

    def wanted(self, existing: Iterable[str]) -> Sequence[str]:
        """Whose totals to ask for, besides the busiest: channels with a name, and new ones that may get one."""
        new = sorted(set(existing) - self._last.keys() - self._others)
        return [*self._last, *new[: self._most]]

    def count(self, totals: Iterable[Total], existing: Iterable[str]) -> tuple[Mapping[str, Total], Total | None]:
        """Totals by name, and of all others together; None while every channel has a name."""
        found = list(totals)
        everything = next((total for total in found if total.channel is None), NOTHING)
        there = {total.channel: total for total in found if total.channel is not None}
        for name in self._last.keys() - there.keys():
            self._gone = plus(self._gone, self._last.pop(name))
        for name, total in self._last.items():
            if there[name].sent < total.sent:  # dropped, and made again under the same name
                self._gone = plus(self._gone, total)
        busiest = sorted(there.values(), key=lambda total: (-total.sent, total.channel or ""))
        for total in busiest:
            assert total.channel is not None
            fits = len(self._last) < self._most and total.channel not in self._others and total.channel != OTHER
            if fits or total.channel in self._last:
                self._last[total.channel] = total
        self._others |= set(existing) - self._last.keys()
        if not self._others:
            return dict(self._last), None
        others = plus(everything, self._gone, -1)
        for total in self._last.values():
            others = plus(others, total, -1)
        return dict(self._last), others
