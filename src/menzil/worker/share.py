"""Each endpoint's share of a worker's slots: one that answers slowly leaves room for the others.

An endpoint that answers within QUICK seconds is not limited: its slots come back soon enough. Of any other endpoint, no
more deliveries are under way than there are slots free. So one slow endpoint takes half of the slots, two take two
thirds, and some are always free. An endpoint that is alone may take nine tenths: the rest is for the first message of
another one.

The rule holds twice: for slots of deliveries that began lately, and for all slots, together with those that a slow
delivery gives to others (`source.ELASTIC`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: Seconds that a delivery to an endpoint may take on average without being limited.
QUICK = 0.1
#: Seconds after its last message during which an endpoint counts as one of several.
RECENT = 60.0
#: How many times the free slots an endpoint may use: alone, and beside others.
ALONE, BESIDE = 9.0, 1.0
#: An endpoint that had its share is served again below this part of it: leasing one by one would cost a call each.
AGAIN = 0.75
#: How much the last delivery counts in the average.
_WEIGHT = 0.2


class Share:
    """One endpoint."""

    __slots__ = ("held", "is_out", "pace", "seen_at", "slow")

    def __init__(self) -> None:
        self.held = 0  # leased, and not over
        self.slow = 0  # of these, the ones that took long at the last look
        self.pace: float | None = None  # seconds of a delivery, the last ones weighing most
        self.seen_at = 0.0
        self.is_out = False

    @property
    def is_quick(self) -> bool:
        return self.pace is not None and self.pace < QUICK and not self.slow


class Shares:
    """All endpoints that a source has seen lately."""

    def __init__(self, slots: int, most: int) -> None:
        self._slots = slots
        self._most = most
        self._by: dict[str, Share] = {}
        self.out: list[str] = []  # those that have had their share
        self.room = 1  # how many messages may be leased without giving one endpoint more than its share

    def resize(self, slots: int, most: int) -> None:
        """There are so many slots from now on."""
        self._slots, self._most = slots, most

    def enter(self, channels: Iterable[str], now: float) -> None:
        """These were leased."""
        for channel in channels:
            share = self._by.get(channel)
            if share is None:
                share = self._by[channel] = Share()
            share.held += 1
            share.seen_at = now

    def fits(self, channels: Iterable[str]) -> list[bool]:
        """Say which of these may be taken in: a lease beside quick endpoints may bring a flood for a new one."""
        channels = list(channels)
        new = {channel for channel in channels if channel not in self._by}
        if not new or len(channels) <= 1:
            return [True] * len(channels)
        times = ALONE if len(self._by) + len(new) < 2 else BESIDE
        left = dict.fromkeys(new, max(1, round(self._slots * times / (1 + times))))
        answers = []
        for channel in channels:
            if channel in left:
                left[channel] -= 1
            answers.append(left.get(channel, 0) >= 0)
        return answers

    def leave(self, channel: str, seconds: float | None) -> None:
        """One of them is over, after so many seconds; None: it was not delivered."""
        share = self._by[channel]
        share.held -= 1
        if seconds is not None:
            pace = share.pace
            share.pace = seconds if pace is None else pace + (seconds - pace) * _WEIGHT

    def slow(self, counts: Mapping[str, int], now: float) -> None:
        """So many deliveries of each have taken long already. Forgets endpoints that are gone."""
        for channel, share in list(self._by.items()):
            share.slow = counts.get(channel, 0)
            if not share.held and share.seen_at < now - RECENT:
                del self._by[channel]

    def look(self) -> None:
        """Find out which channels have had their share."""
        limited = [(channel, share) for channel, share in self._by.items() if not share.is_quick]
        if self._by and not limited:
            self.out, self.room = [], self._most
            return
        times = ALONE if len(self._by) < 2 else BESIDE
        held = sum(share.held for share in self._by.values())
        free = self._most - held
        # What takes long already has given its slot to others.
        young = {channel: max(0, share.held - share.slow) for channel, share in limited}
        free_young = self._slots - sum(young.values()) - sum(s.held for s in self._by.values() if s.is_quick)
        limits = max(1.0, times * free_young), max(1.0, times * free)
        self.out = []
        for channel, share in limited:
            part = max(young[channel] / limits[0], share.held / limits[1])
            share.is_out = part >= (AGAIN if share.is_out else 1)
            if share.is_out:
                self.out.append(channel)
        within = [(young[channel], share.held) for channel, share in limited if not share.is_out] or [(0, 0)]
        rooms = (
            times * free_young - max(one for one, _ in within),
            times * free - max(one for _, one in within),
        )
        self.room = max(1, round(min(rooms) / (1 + times)))
