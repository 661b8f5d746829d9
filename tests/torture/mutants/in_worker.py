"""Bugs in the worker, put in by patching it in its own process before it starts."""

from __future__ import annotations

import asyncio
import os
import zlib
from typing import Any

from menzil.model.outcome import Complete
from menzil.ops import consuming, working
from menzil.worker.held import Held
from menzil.worker.source import Source
from menzil.worker.wake import Bell
from tests.torture.place import NAME

#: Seconds that a settle takes, about: so long after it the delivery begins.
SETTLED = 0.05
TWO_HOURS = 7200.0


def settle_before_delivery() -> None:
    """A message is completed, and then delivered."""
    deliver = Source._deliver

    async def settle_first(self: Source, held: Held, task: asyncio.Task[None]) -> bool:
        self.shift.settler.put(held, Complete())
        await asyncio.sleep(SETTLED)
        return await deliver(self, held, task)

    Source._deliver = settle_first  # type: ignore[method-assign]


def worker_clock() -> None:
    """The end of a lease is reckoned by the clock of the worker, which is two hours before or behind the server's."""
    off = TWO_HOURS if zlib.crc32(os.environ[NAME].encode()) % 2 else -TWO_HOURS
    lease, beat = working.lease, consuming.heartbeat_many

    def lease_until(limit: int, seconds: float, *rest: Any, **named: Any) -> Any:
        return lease(limit, max(0.001, seconds + off), *rest, **named)

    def keep_until(leases: Any, seconds: float = 30) -> Any:
        return beat(leases, max(0.001, seconds + off))

    working.lease = lease_until
    consuming.heartbeat_many = keep_until


def no_polling() -> None:
    """A worker that found nothing waits until somebody wakes it."""
    wait = Bell.wait

    async def wait_for_the_bell(self: Bell, heard: int, seconds: float) -> bool:
        return await wait(self, heard, 3600)

    Bell.wait = wait_for_the_bell  # type: ignore[method-assign]
