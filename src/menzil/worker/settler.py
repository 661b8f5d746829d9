"""Settles outcomes: all that piled up while the last round was under way, in one transaction.

Nobody waits for it. Outcomes that a lost connection kept from being settled are tried again while their lease lasts;
then they are dropped and counted as lost, and the message is delivered again. An outcome that the database refuses (a
state too large, a time that never comes) becomes a failure that says so, and harms nobody else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.model.errors import ConnectionFailedError, MenzilError
from menzil.model.outcome import Complete, Defer, Fail, LeaseOutcome, Outcome, Settlement
from menzil.ops import consuming, working
from menzil.ops.op import Op
from menzil.worker.held import Held

if TYPE_CHECKING:
    from menzil.worker.shift import Shift
    from menzil.worker.source import Source

#: Outcomes of one round, and how many may pile up before nothing more is leased.
ROUND, FULL = 1000, 4000

Item = tuple[Held, Outcome, bool]  # and whether it was handed back by the worker, not deferred by a handler


class Settler:
    """Takes outcomes and tells the database."""

    def __init__(self, shift: Shift) -> None:
        self._shift = shift
        self._waiting: list[Item] = []
        self._under_way = 0
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()

    @property
    def count(self) -> int:
        """How many outcomes are not settled yet."""
        return len(self._waiting) + self._under_way

    @property
    def is_full(self) -> bool:
        """Whether it is time to stop leasing until the database has caught up."""
        return len(self._waiting) >= FULL

    def put(self, held: Held, outcome: Outcome, *, back: bool = False) -> None:
        """Settle this in the next round."""
        self._waiting.append((held, outcome, back))
        if not self._some.is_set():
            self._some.set()
            self._none.clear()

    def note(self, held: Held, outcome: Outcome) -> None:
        """Count what was settled in a handler's own transaction."""
        tally = self._shift.tally
        if isinstance(outcome, Complete):
            tally.delivered += 1
        else:
            tally.deferred += 1
        self._after({held.source})

    async def settled(self, timeout: float) -> bool:
        """Wait until everything is settled; False when it took too long."""
        try:
            async with asyncio.timeout(timeout):
                await self._none.wait()
        except TimeoutError:
            return False
        return True

    async def work(self) -> None:
        """Settle, round after round."""
        while True:
            await self._some.wait()
            batch, self._waiting = self._next()
            self._under_way = len(batch)
            try:
                await self._settle(batch)
            except (ConnectionFailedError, psycopg.OperationalError):
                self._keep(batch)
                await self._shift.settle.rest(0.5)
            self._under_way = 0
            if not self._waiting:
                self._some.clear()
                self._none.set()
            self._after({item[0].source for item in batch})

    def _next(self) -> tuple[list[Item], list[Item]]:
        batch, later = self._waiting[:ROUND], self._waiting[ROUND:]
        if len({item[0].id for item in batch}) == len(batch):
            return batch, later
        # A message that came back to this worker while an old lease of it was still around: one token per round.
        first: dict[int, Item] = {}
        again = [item for item in batch if first.setdefault(item[0].id, item) is not item]
        return list(first.values()), again + later

    async def _settle(self, batch: list[Item]) -> None:
        batch.sort(key=_by_id)
        groups = [
            group
            for kind in (Fail, Complete, Defer)  # a success takes back failures of the same moment
            if (group := [item for item in batch if isinstance(item[1], kind)])
        ]
        try:
            ops = [_op(group) for group in groups]
            if isinstance(batch[0][1], Complete) and len(groups) == 1:
                answers = [await self._shift.settle.run(ops[0])]
            else:
                answers = (await self._shift.settle.run_all([working.hurry(), *ops]))[1:]
        except (ConnectionFailedError, psycopg.OperationalError):
            raise
        except Exception as error:  # also what cannot be written as JSON
            await self._settle_apart(batch, error)
            return
        for group, answer in zip(groups, answers, strict=True):
            self._count(group, answer)

    async def _settle_apart(self, batch: list[Item], error: Exception) -> None:
        """One of them is refused: find it by halves, and fail it with what the database said."""
        if len(batch) > 1:
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                await self._settle(half)
            return
        ((held, outcome, back),) = batch
        sentence = error.message if isinstance(error, MenzilError) else str(error)
        self._shift.log.error("settle_refused", channel=held.channel, id=held.id, error=sentence)
        if isinstance(outcome, Fail) and outcome.reason.startswith(_REFUSED):
            self._drop(held, "the database refuses every answer")
            return
        kind = type(outcome).__name__
        await self._settle([(held, Fail(f"{_REFUSED} {kind}: {self._shift.hide(sentence)}"), back)])

    def _keep(self, batch: list[Item]) -> None:
        now = monotonic()
        kept = [item for item in batch if item[0].ends_at > now]
        for item in batch:
            if item[0].ends_at <= now:
                self._drop(item[0], "the database could not be reached while it lasted")
            item[0].uncertain = True
        self._waiting[:0] = kept

    def _drop(self, held: Held, why: str) -> None:
        self._shift.tally.lost += 1
        self._shift.log.warning("lease_lost", channel=held.channel, id=held.id, attempt=held.attempt, why=why)

    def _count(self, group: Sequence[Item], answers: Any) -> None:
        tally, kind = self._shift.tally, type(group[0][1])
        if kind is Complete:
            said: dict[int, str] = dict(answers)
            late = [item for item in group if not _done(item[0], said.get(item[0].id))]
            tally.delivered += len(group) - len(late)
        else:
            outcomes: list[LeaseOutcome] = answers
            late = []
            for item, answer in zip(group, outcomes, strict=True):
                if not answer.ok:
                    late.append(item)
                elif isinstance(item[1], Fail):
                    self._failed(item[0], item[1], answer.outcome)
                elif item[2]:
                    tally.handed_back += 1
                else:
                    tally.deferred += 1
        for item in late:
            self._drop(item[0], "it ended before its outcome was settled")

    def _failed(self, held: Held, outcome: Fail, answer: Settlement) -> None:
        self._shift.tally.failed += 1
        self._shift.tally.dead += answer is Settlement.DEAD
        self._shift.log.warning(
            "failed",
            channel=held.channel,
            id=held.id,
            attempt=held.attempt,
            then=answer.value,
            reason=outcome.reason,
        )

    def _after(self, sources: set[Source]) -> None:
        """What was settled may have made room here, or made something ready: the next of its ordering key."""
        self._shift.happened += 1
        for source in self._shift.sources:
            source.room.set()  # every source waits while too many outcomes do, also one that has none among them
        for source in sources:
            source.bell.ring()


_REFUSED = "The database refused to settle this"


def _done(held: Held, answer: str | None) -> bool:
    # After a round whose answer never came, a message that is gone went by that round.
    return answer == "settled" or (held.uncertain and answer == "unknown")


def _by_id(item: Item) -> int:
    return item[0].id


def _op(group: Sequence[Item]) -> Op[Any]:
    if isinstance(group[0][1], Complete):
        responses = [item[1].response for item in group]  # type: ignore[union-attr]  # all of them are Complete
        return working.complete([item[0] for item in group], responses)
    if isinstance(group[0][1], Fail):
        return consuming.fail_many([(item[0], item[1]) for item in group])  # type: ignore[misc]  # all are Fail
    return consuming.defer_many([(item[0], item[1]) for item in group])  # type: ignore[misc]  # all are Defer
