"""Keeps leases: a heartbeat after a third of the lease, and an end to deliveries that had none by two thirds.

The clock is the monotonic one of this machine, read before the lease was asked for. The database counts from a
later moment, so this worker stops before another one may begin.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

import psycopg

from menzil.model.errors import MenzilError
from menzil.ops import consuming
from menzil.worker.held import Held
from menzil.worker.source import Source

if TYPE_CHECKING:
    from menzil.worker.shift import Shift

#: Seconds a message may wait here before it goes back to workers that have a free slot.
PATIENCE = 2.0
MOST = 1000


class Keeper:
    """Watches every lease of a shift."""

    def __init__(self, shift: Shift) -> None:
        self._shift = shift
        self._beating: asyncio.Task[None] | None = None

    async def work(self) -> None:
        """Look at all leases several times within the shortest one."""
        tick = max(0.05, min([0.5, *(source.lease / 12 for source in self._shift.sources)]))
        while True:
            await asyncio.sleep(tick)
            now = monotonic()
            for source in self._shift.sources:
                self._stop_overdue(source, now)
                source.let_slow_ones_be(now)
                self._hand_back_stuck(source, now)
                if source.pool is not None:
                    source.pool.pass_on()
            if self._beating is None or self._beating.done():
                self._beating = asyncio.create_task(self._beat(), name="menzil-heartbeat")

    def _stop_overdue(self, source: Source, now: float) -> None:
        limit = now - source.lease * 2 / 3
        for held in [held for held in source.held if held.kept_at <= limit]:
            self.lose(held, "no heartbeat came through")

    def _hand_back_stuck(self, source: Source, now: float) -> None:
        # Leased ahead because deliveries were fast, and now they are not: another worker may be free.
        if source.queue and source.queue[0].taken_at < now - PATIENCE and source.busy >= source.limit:
            source.forget_pace()
            count = source.hand_back_waiting()
            self._shift.log.info("handed_back", source=source.name, count=count, why="deliveries became slow")

    async def _beat(self) -> None:
        for source in list(self._shift.sources):
            limit = monotonic() - source.lease / 3
            due = [held for held in source.held if held.kept_at <= limit]
            due.sort(key=lambda held: held.id)
            for first in range(0, len(due), MOST):
                if not await self._keep(source, due[first : first + MOST]):
                    return

    async def _keep(self, source: Source, due: list[Held]) -> bool:
        sent_at = monotonic()
        try:
            answers = await self._shift.beat.run(consuming.heartbeat_many(due, source.lease))
        except (MenzilError, psycopg.Error) as error:
            self._shift.log.warning("heartbeat_failed", source=source.name, error=error)
            await self._shift.beat.rest(source.lease / 12)
            return False
        for held, answer in zip(due, answers, strict=True):
            if answer.ok:
                held.kept_at = sent_at
            elif held in source.held:  # otherwise it was settled meanwhile
                self.lose(held, "it ended before the heartbeat")
        return True

    def lose(self, held: Held, why: str) -> None:
        """Stop a delivery whose lease is not ours any more, or may not be."""
        held.note_trace()
        held.source.give_up(held)
        self._shift.tally.lost += 1
        self._shift.log.warning("lease_lost", why=why, **held.facts())
