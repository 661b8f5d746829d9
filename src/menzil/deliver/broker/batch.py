"""One batch on one connection: the outcomes so far, and how many are missing.

A batch belongs to the connection that it was written to. When the batch is over, the connection forgets it, so a late
acknowledgement finds nothing that it could settle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from menzil.deliver.broker.errors import unknown
from menzil.model.outcome import Complete, Outcome

#: Written, and where is not asked for.
COMPLETE = Complete()


class Batch:
    """Outcomes by position in the batch."""

    __slots__ = ("_left", "_waiter", "details", "error", "outcomes")

    def __init__(self, count: int, *, details: bool = True) -> None:
        self.details = details  # whether where a message was written is kept; COMPLETE is enough otherwise
        self.outcomes: list[Outcome | None] = [None] * count
        self._left = count
        self._waiter: asyncio.Future[None] | None = None
        self.error: Exception | None = None  # why no more acknowledgements will come

    @property
    def is_over(self) -> bool:
        """Whether nothing is waited for any more."""
        return not self._left or self.error is not None

    def settle(self, place: int, outcome: Outcome) -> None:
        """Take the outcome of one message. The first one counts."""
        if 0 <= place < len(self.outcomes) and self.outcomes[place] is None:
            self.outcomes[place] = outcome
            self._left -= 1
            if not self._left:
                self._wake()

    def settle_all(self, places: Iterable[int], outcome: Outcome) -> None:
        """Take the same outcome for some messages."""
        outcomes = self.outcomes
        for place in places:
            if outcomes[place] is None:
                outcomes[place] = outcome
                self._left -= 1
        if not self._left:
            self._wake()

    def break_off(self, error: Exception) -> None:
        """No more acknowledgements will come."""
        if self.error is None:
            self.error = error
            self._wake()

    async def over(self) -> None:
        """Wait until every outcome is known, or none will come any more."""
        if not self.is_over:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def closed(self, reason: str, outcome: Callable[[str], Outcome] = unknown) -> Sequence[Outcome]:
        """Return all outcomes; messages without one get this."""
        rest = outcome(reason)
        return [rest if found is None else found for found in self.outcomes]
