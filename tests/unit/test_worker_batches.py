"""Batches and settles of a worker at moments that no server brings about on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from types import SimpleNamespace
from typing import Any

import psycopg

from menzil.model.errors import ConnectionFailedError
from menzil.model.message import Message
from menzil.model.outcome import Complete, Defer, Fail, LeaseOutcome, Settlement
from menzil.worker import outcomes
from menzil.worker.batches import LANES, Batches
from menzil.worker.budget import Budget
from menzil.worker.held import Held
from menzil.worker.log import Hide
from menzil.worker.settler import Settler
from menzil.worker.source import Source
from menzil.worker.tally import Tally, Tries

#: Messages of one batch.
SIZE = 2


class Settled:
    """What came out, as a settler gets it."""

    def __init__(self) -> None:
        self.found: dict[int, Any] = {}

    def put(self, held: Held, outcome: Any) -> None:
        self.found[held.id] = outcome

    def put_done(self, done: Sequence[Held]) -> None:
        self.found |= dict.fromkeys([held.id for held in done], outcomes.COMPLETE)


def made(call: Any) -> tuple[Source, Batches, Settled]:
    """A source of one endpoint that takes batches."""
    settled = Settled()
    shift: Any = SimpleNamespace(
        wake=SimpleNamespace(bells=[]), spans=None, hide=Hide(), budget=Budget(1 << 30, 1), tries=Tries(), name="w",
        settler=settled,
    )  # fmt: skip
    many = (lambda _: SIZE, call)
    source = Source(
        shift, "post", lambda _: call, channels=None, endpoints=True, is_post=True, concurrency=10, lease=60, batch=100,
        many=many,
    )  # fmt: skip
    assert source._batches is not None
    return source, source._batches, settled


async def quiet(batches: Batches) -> None:
    async with asyncio.timeout(60):
        while batches._flights:
            await asyncio.sleep(0)


def test_a_batch_that_is_stopped_before_its_first_step_gives_its_lane_back() -> None:
    calls: list[list[int]] = []

    async def call(messages: Sequence[Message]) -> list[None]:
        calls.append([message.id for message in messages])
        return [None] * len(messages)

    async def play() -> None:
        source, batches, settled = made(call)
        kept = source.take_in([Message(n, "hub", {}) for n in range(SIZE * LANES + 1)], monotonic())
        for held in kept[:-1]:  # a heartbeat says so before the tasks run; the last one waits for a lane
            source.give_up(held)
        await quiet(batches)
        assert (calls, settled.found) == ([[kept[-1].id]], {kept[-1].id: outcomes.COMPLETE})
        assert (batches.count, len(source.held), source.shift.budget.held) == (0, 0, 0)

        held = source.take_in([Message(99, "hub", {})], monotonic())[0]
        source.stop_all()
        await quiet(batches)
        assert settled.found[held.id] is outcomes.BACK

    asyncio.run(play())


def test_a_protocol_that_cancels_something_of_its_own_has_failed() -> None:
    async def call(messages: Sequence[Message]) -> list[None]:
        raise asyncio.CancelledError

    async def play() -> None:
        source, batches, settled = made(call)
        source.take_in([Message(1, "hub", {})], monotonic())
        await quiet(batches)
        assert isinstance(settled.found[1], Fail)

    asyncio.run(play())


class Link:
    """A connection on which the first settle is refused for a character, and the second is cut off."""

    def __init__(self) -> None:
        self.errors = [psycopg.errors.UntranslatableCharacter("no such character"), ConnectionFailedError("gone")]
        self.completed: list[str] = []
        self.others: list[str] = []

    async def run(self, op: Any) -> list[Any]:
        if self.errors:
            raise self.errors.pop(0)
        self.completed.append(op.params[0])
        return []

    async def run_all(self, ops: Any) -> list[Any]:
        self.others.append(ops[1].params[0])
        return [None, [LeaseOutcome(2, Settlement.SETTLED)]]

    async def rest(self, seconds: float) -> None: ...


def test_an_answer_that_was_made_plainer_takes_no_other_outcome_along() -> None:
    async def play() -> None:
        link = Link()
        shift: Any = SimpleNamespace(
            settle=link, lease=SimpleNamespace(is_busy=True), sources=[], spans=None, hide=Hide(), tally=Tally(),
            happened=0,
        )  # fmt: skip
        source, _, _ = made(link.run)
        settler = Settler(shift)
        settler.put(Held(Message(1, "hub", {}), source, monotonic()), Complete({"said": "Ł"}))
        settler.put(Held(Message(2, "hub", {}), source, monotonic()), Defer())
        work = asyncio.create_task(settler.work())
        over = asyncio.create_task(settler.settled(60))
        await asyncio.wait([work, over], return_when=asyncio.FIRST_COMPLETED)
        assert not work.done()
        assert await over
        work.cancel()
        assert (link.completed, link.others) == (["{1}"], ["{2}"])
        assert (shift.tally.delivered, shift.tally.deferred) == (1, 1)

    asyncio.run(play())
