"""Permits for deliveries, shared by the databases of one worker: concurrency is that of the whole process.

The sources of one kind (endpoints, async handlers, plain functions, a handler with slots of its own) share one pool,
one source for each database. `Source.limit` is how many deliveries a source may have under way; the sum of the limits
never exceeds the size of the pool.

A source that found as many messages as it asked for is hungry: it wants all permits. Another one wants a permit for
each message it holds, and one to ask with. Permits are dealt out evenly up to what each wants (`_level`): that is the
part of a source. What others do not use goes to the source that asks. A source that has less than its part waits in
line. Then each delivery that ends elsewhere gives its permit away, if its source has more than its own part. Where
there are fewer permits than sources, they take turns, a delivery each.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from menzil.worker.source import Source


#: Seconds for which a lease under way keeps permits for what it may bring. A database that hangs must not keep them:
#: what its lease brings after all waits here for permits.
ASKING = 1.0


class Pool:
    """So many permits."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.line: list[Source] = []  # sources that have less than their part, the one that waits longest first
        self._sources: list[Source] = []

    def join(self, source: Source) -> None:
        """One more shares the permits."""
        source.limit = 0
        self._sources.append(source)

    def leave(self, source: Source) -> None:
        """This one has ended."""
        source.limit = 0
        if source in self._sources:
            self._sources.remove(source)
        self._stand(source, in_line=False)
        self.call()

    def ask(self, source: Source) -> None:
        """Set the limit of a source that is about to lease; others keep what they use within their part."""
        level = self._level(source)
        part = min(self._wanted(source, asks=True), max(1, level))
        free = self.size
        for one in self._sources:
            if one is not source:
                one.resize(min(one.limit, self._kept(one, level)))
                free -= one.limit
        for one in self.line[: self.line.index(source) if source in self.line else None]:
            free -= max(0, min(self._wanted(one), max(1, level)) - one.limit)
        # What it has of its part stays: it may have been called from the line for that.
        source.resize(max(_running(source), min(source.limit, part), min(self.size, free)))
        self._stand(source, in_line=source.limit < part)

    def ended(self, source: Source) -> None:
        """A delivery of this source is over, and others wait in line: give its permit to them unless it is its own."""
        kept = max(_running(source), self._level())  # the level is 0 where sources take turns
        if source.limit > kept:
            source.resize(kept)
            self._stand(source, in_line=not kept and (source.hungry or bool(source.queue)))
            self.call()

    def pass_on(self) -> None:
        """Wake sources that could use more, now that others may use less."""
        if sum(min(one.limit, _used(one)) for one in self._sources) < self.size:
            self.call()
            for one in self._sources:
                if one.limit < (self.size if one.hungry else _used(one)):
                    one.turn()

    def call(self) -> None:
        """Let sources in line take what is free, the first one first."""
        for one in list(self.line):
            one.turn()

    def _stand(self, source: Source, *, in_line: bool) -> None:
        if in_line and source not in self.line:
            self.line.append(source)
        elif not in_line and source in self.line:
            self.line.remove(source)

    def _wanted(self, source: Source, *, asks: bool = False) -> int:
        if source.hungry:
            return self.size
        return min(self.size, _used(source) + (asks or source in self.line))

    def _kept(self, source: Source, level: int) -> int:
        """What a source keeps when another one asks: deliveries under way, and its part of what it has leased."""
        return max(_running(source), min(_used(source), max(1, level)))

    def _level(self, asking: Source | None = None) -> int:
        """How many permits each source may have that wants so many; 0 when there are fewer permits than sources."""
        wants = sorted(self._wanted(one, asks=one is asking) for one in self._sources)
        left, sources = self.size, len(wants)
        for place, want in enumerate(wants):
            level = left // (sources - place)
            if want > level:
                return level
            left -= want
        return self.size


def _running(source: Source) -> int:
    return max(0, source.busy - source.slow)


def _used(source: Source) -> int:
    """Messages that need a permit: leased, or being leased. A slow delivery to an endpoint has given its back."""
    asked = source.asked if monotonic() < source.asked_at + ASKING else 0
    return max(0, source.in_slots + asked - source.slow)
