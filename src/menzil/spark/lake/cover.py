"""Which ends of messages a lake has: rectangles of transaction ids and times of creation. Pure.

Exports go on from the transaction id at which the last one stopped. One with --until leaves out what was created later,
so of the transactions that it covered some rows are still to come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any


def moment(at: datetime) -> str:
    """As people write it, and so that texts compare as times do."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


@dataclass(frozen=True, order=True)
class Part:
    """Ends in transactions from `start` to before `until`, of rows created from one time to before another."""

    start: int
    until: int
    created_from: str | None = None
    created_until: str | None = None

    def as_json(self) -> dict[str, Any]:
        """For a manifest. Transaction ids are texts: they have 64 bits."""
        return {**vars(self), "start": str(self.start), "until": str(self.until)}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Part:
        """From a manifest."""
        return cls(int(given["start"]), int(given["until"]), given["created_from"], given["created_until"])

    def meets(self, other: Part) -> bool:
        """Whether a row could be in both."""
        return (
            self.start < other.until
            and other.start < self.until
            and (self.created_from or "") < _top(other.created_until)
            and (other.created_from or "") < _top(self.created_until)
        )


def _top(created_until: str | None) -> str:
    return "~" if created_until is None else created_until  # after every digit


def covered(parts: Iterable[Part]) -> list[Part]:
    """The same rows in few parts, by transaction id; each begins with the oldest row."""
    given = list(parts)
    edges = sorted({edge for part in given for edge in (part.start, part.until)})
    found: list[Part] = []
    for start, until in pairwise(edges):
        tops = [part.created_until for part in given if part.start <= start and until <= part.until]
        if not tops:
            continue
        top = max(tops, key=_top)
        if found and (found[-1].until, found[-1].created_until) == (start, top):
            start = found.pop().start
        found.append(Part(start, until, None, top))
    return found


def missing(parts: Iterable[Part], until: int, created_until: str | None = None) -> list[Part]:
    """What is not covered yet of the ends before `until`, of rows created before that time."""
    found, last = [], 0
    for part in covered(parts):
        last = part.until
        if _top(part.created_until) < _top(created_until):
            found.append(Part(part.start, part.until, part.created_until, created_until))
    return [*found, Part(last, until, None, created_until)] if last < until else found
