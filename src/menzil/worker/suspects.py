"""Messages that may have killed a worker.

When a worker dies, all it had leased count a failure, although at most one message is to blame. Delivered together
again, the guilty one would take the others along until their retries are used up. So a message whose last lease was not
settled is delivered with no other such message in this process; the rest go back for a moment, which costs no retry.
An innocent message ends at its next delivery, and the guilty one ends alone as a dead letter.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from menzil.model.message import Message
from menzil.model.outcome import Defer
from menzil.ops import consuming, working
from menzil.worker.held import Held
from menzil.worker.source import Source

if TYPE_CHECKING:
    from menzil.worker.shift import Shift

#: Seconds after which a suspect that is still being delivered is trusted enough to begin with another.
TRUSTED = 5.0
#: Seconds between the returns of suspects that go back, a little more than a delivery takes: at least, and at most.
SHORT, LONG = 0.03, 1.0
#: Seconds until one that is due again is surely found.
SOON = 0.5


class Suspects:
    """Lets one suspect at a time into this process."""

    def __init__(self, shift: Shift) -> None:
        self._shift = shift
        self._current: Held | None = None
        self.back_at = 0.0  # when the last one that was sent away has had time to come back

    async def find(self, messages: list[Message]) -> set[int]:
        """Ask which of these are suspects."""
        failed = [message.id for message in messages if message.retry_count]
        return await self._shift.lease.run(working.suspects(failed)) if failed else set()

    async def take_in(self, source: Source, messages: list[Message], found: set[int], asked_at: float) -> None:
        """Take in what was leased, of the suspects among them only one."""
        if not found:
            source.take_in(messages, asked_at)
            return
        source.take_in([message for message in messages if message.id not in found], asked_at)
        waiting = [message for message in messages if message.id in found]
        chosen = None if self._busy else waiting.pop(0)
        if waiting:
            apart = min(LONG, max(SHORT, 1.5 * (source.pace or 0)))
            items = [(message, Defer(apart * place)) for place, message in enumerate(waiting, 1)]
            self.back_at = monotonic() + apart * len(waiting) + SOON
            # Settled before the chosen one begins: should it be the guilty one, it takes no other along.
            try:
                answers = await self._shift.lease.run(consuming.defer_many(items))
            except Exception:
                source.hand_back([*waiting, *([chosen] if chosen else [])], asked_at)
                raise
            self._shift.tally.handed_back += sum(answer.ok for answer in answers)
        if chosen is not None:
            (self._current,) = source.take_in([chosen], asked_at)
            self._shift.log.info(
                "suspect", channel=chosen.channel, id=chosen.id, attempt=chosen.attempt, waiting=len(waiting)
            )

    @property
    def _busy(self) -> bool:
        current = self._current
        return current is not None and current in current.source.held and monotonic() < current.taken_at + TRUSTED
