"""Bugs in the worker, put in by patching it in its own process before it starts."""

from __future__ import annotations

import asyncio
import os
import zlib
from collections.abc import Callable
from typing import Any

from menzil.deliver.broker.batch import Batch
from menzil.model.message import Message
from menzil.model.outcome import Complete
from menzil.ops import consuming
from menzil.worker.held import Held
from menzil.worker.outcomes import COMPLETE
from menzil.worker.shift import Shift
from menzil.worker.source import Call, Source
from menzil.worker.wake import Bell
from tests.torture.place import NAME

#: Seconds that a settle takes, about: so long after it the delivery begins.
SETTLED = 0.05
TWO_HOURS = 7200.0


def settle_before_delivery() -> None:
    """A message is completed, and then delivered."""
    make, take_in = Source.__init__, Source.take_in

    def deliver_late(self: Source, shift: Shift, name: str, pick: Callable[[str], Call], **named: Any) -> None:
        async def deliver(message: Message) -> Any:
            await asyncio.sleep(SETTLED)
            return await pick(message.channel)(message)

        make(self, shift, name, lambda _: deliver, **named)

    def settle_first(self: Source, messages: list[Message], asked_at: float) -> list[Held]:
        for message in messages:
            self.shift.settler.put(Held(message, self, asked_at), COMPLETE)
        return take_in(self, messages, asked_at)

    Source.__init__, Source.take_in = deliver_late, settle_first  # type: ignore[method-assign]


def worker_clock() -> None:
    """The end of a lease is reckoned by the clock of the worker, which is two hours before or behind the server's."""
    off = TWO_HOURS if zlib.crc32(os.environ[NAME].encode()) % 2 else -TWO_HOURS
    lease, following, beat = consuming.dequeue, consuming.following, consuming.heartbeat_many

    def lease_until(limit: int, seconds: float, *rest: Any, **named: Any) -> Any:
        return lease(limit, max(0.001, seconds + off), *rest, **named)

    def settle_and_lease_until(done: Any, limit: int, seconds: float, *rest: Any, **named: Any) -> Any:
        return following(done, limit, max(0.001, seconds + off), *rest, **named)

    def keep_until(leases: Any, seconds: float = 30) -> Any:
        return beat(leases, max(0.001, seconds + off))

    consuming.dequeue = lease_until  # type: ignore[assignment]
    consuming.following = settle_and_lease_until  # type: ignore[assignment]
    consuming.heartbeat_many = keep_until  # type: ignore[assignment]


def no_polling() -> None:
    """A worker that found nothing waits until somebody wakes it."""
    wait = Bell.wait

    async def wait_for_the_bell(self: Bell, heard: int, seconds: float) -> bool:
        return await wait(self, heard, 3600)

    Bell.wait = wait_for_the_bell  # type: ignore[method-assign]


def settle_before_the_confirm() -> None:
    """A message to a broker is completed when it is written."""

    async def over(self: Batch) -> None:
        for place in range(len(self.outcomes)):
            self.settle(place, Complete())

    Batch.over = over  # type: ignore[method-assign]
