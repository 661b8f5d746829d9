"""A source: leases messages in batches and delivers them in slots, as many at once as it has slots.

A slot is a task that takes one message after the other: a task for each message would cost more than many a handler.
Slots start when there is work for them. While they deliver, the next batch is already leased; messages that are
delivered faster than they can be leased are leased a little ahead (never more than AHEAD seconds of work). Messages to
endpoints whose protocol takes many at once have no slots: see batches.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, Any

from menzil.model.message import Message
from menzil.worker import outcomes
from menzil.worker.batches import Batches, CallMany, Size
from menzil.worker.held import Held
from menzil.worker.share import Shares
from menzil.worker.slot import ROUSED, slot
from menzil.worker.wake import Bell

if TYPE_CHECKING:
    from menzil.worker.permits import Pool
    from menzil.worker.shift import Shift

#: Seconds of work that may wait in this process.
AHEAD = 0.02
#: An endpoint that takes longer than SLOW seconds gives its slot to others, until there are ELASTIC times as many
#: deliveries: they only wait for an answer, and one endpoint that hangs must not hold up the rest.
SLOW, ELASTIC = 1.0, 5

Call = Callable[[Message], Awaitable[Any]]


class Source:
    """Messages of some channels, or of all endpoints, and the slots that deliver them."""

    def __init__(
        self,
        shift: Shift,
        name: str,
        pick: Callable[[str], Call],
        *,
        channels: Sequence[str] | None,
        endpoints: bool = False,
        is_post: bool = False,
        apart: bool = False,
        concurrency: int,
        lease: float,
        batch: int,
        many: tuple[Size, CallMany] | None = None,
        pool: Pool | None = None,
    ) -> None:
        self.shift = shift
        self.name = name
        self.pick = pick
        self.channels = channels
        self.endpoints = endpoints  # all endpoints, with any name
        self.is_post = is_post  # whether its messages go to endpoints
        self.apart = apart  # whether each message has a lease of its own: its settle waits for no other message
        self.concurrency = concurrency
        self.lease = lease
        self.batch = batch
        self.held: set[Held] = set()  # leased, and no outcome yet: waiting here or being delivered
        self.queue: deque[Held] = deque()  # of these, the ones that wait
        self.room = asyncio.Event()
        self.bell = Bell()
        shift.wake.bells.append(self.bell)
        # A channel that is alone shares with no other.
        shares = is_post and (channels is None or len(channels) > 1)
        self._shares = Shares(concurrency, concurrency * ELASTIC) if shares else None
        self._batches = Batches(self, *many) if many else None
        self.limit = concurrency  # deliveries at once; less than the concurrency while other databases share it
        self.hungry = False  # whether the last lease found as many messages as it asked for
        self.asked = 0  # messages that a lease under way may bring
        self.asked_at = 0.0  # when that was noted
        self.pool = pool
        if pool is not None:
            pool.join(self)
        self._ahead = 0
        self.slow = 0  # deliveries that take long and have given their slot to others
        self.spent, self.done = 0.0, 0.0  # seconds and deliveries, the recent ones weighing most
        self.idle: list[asyncio.Future[None]] = []
        self.roused = 0
        self.slots: set[asyncio.Task[None]] = set()
        self.context = copy_context()  # as every delivery finds it

    # How much to lease

    @property
    def busy(self) -> int:
        """How many slots are delivering."""
        return self.in_slots - len(self.queue)

    @property
    def in_slots(self) -> int:
        """Messages that have a slot, or wait for one; those of batches need none."""
        return len(self.held) - (self._batches.count if self._batches else 0)

    @property
    def out(self) -> list[str]:
        """Endpoints that have had their share: others are leased."""
        out = self._shares.out if self._shares else []
        return [*out, *self._batches.out] if self._batches else out

    def free(self) -> int:
        """How many messages may be leased now; 0 while it is not worth asking."""
        if self.pool is not None:
            self.pool.ask(self)
            self.rouse()
        if self._shares:
            self._shares.look()
        room = self.places()
        if room and self._shares:
            room = min(room, self._shares.room)
        if self._batches:
            room += self._batches.room
        if not room:
            return 0
        fits = self.shift.budget.room(self._batches.fitting if self._batches else None)
        return min(room, self.batch, fits if self.held else max(1, fits))

    @property
    def patience(self) -> float:
        """Seconds for which it is not worth asking, unless the bell rings."""
        return self._batches.patience if self._batches and not self.in_slots else 0.0

    def places(self) -> int:
        """How many messages slots may take beyond those that they have; 0 for a few, which are not worth a call."""
        room = self.limit + self.slow + self._ahead - self.in_slots
        if room <= 0 or not self.limit:
            return 0
        # Few slots for many messages are not worth a call, but for endpoints that others keep from their slots.
        if self.in_slots and room * 4 < min(self.batch, self.limit + self._ahead) and not self.out:
            return 0
        return room

    def sift(self, messages: list[Message], asked_at: float) -> list[Message]:
        """Hand back what goes beyond the share of an endpoint, in slots or in bytes; return the rest."""
        batched, single = self._batches.sort(messages) if self._batches else ([], messages)
        if self._batches and (beyond := self._batches.leased(batched)):
            self.hand_back(beyond, asked_at)
            gone = set(beyond)
            messages = [message for message in messages if message not in gone]
            batched = [message for message in batched if message not in gone]
        if not self._shares:
            return messages
        fits = self._shares.fits([message.channel for message in single])
        if all(fits):
            return messages
        self.hand_back([message for message, fit in zip(single, fits, strict=True) if not fit], asked_at)
        return [*batched, *(message for message, fit in zip(single, fits, strict=True) if fit)]

    def take_in(self, messages: list[Message], asked_at: float) -> list[Held]:
        """Put what was leased in line and rouse slots for it."""
        batched, single = self._batches.sort(messages) if self._batches else ([], messages)
        new = [Held(message, self, asked_at) for message in messages]
        self.held.update(new)
        self.shift.budget.enter(new)
        if self._batches and batched:
            if single:
                chosen = set(batched)
                self._batches.take_in([held for held in new if held.message in chosen])
            else:
                self._batches.take_in(new)
        self.queue.extend([held for held in new if held.line is None] if batched else new)
        if self._shares:
            self._shares.enter([message.channel for message in single], asked_at)
        if self.done:
            self._ahead = min(self.batch, int(AHEAD * self.limit * self.done / max(self.spent, 1e-9)))
            self.spent, self.done = self.spent / 2, self.done / 2
        self.rouse()
        return new

    def let_slow_ones_be(self, now: float) -> None:
        """Make room for others beside endpoints that keep us waiting."""
        if self._batches and self._batches.count:
            self._batches.go()
        if self.is_post and (self.held or self.slow):
            limit, most = now - SLOW, self.concurrency * (ELASTIC - 1)
            slow = Counter([held.channel for held in self.held if held.task is not None and held.taken_at < limit])
            self.slow = min(most, slow.total())
            if self._shares:
                self._shares.slow(slow, now)
            if self.queue:
                self.rouse()
            if self.places():
                self.room.set()
                if self.out:
                    self.bell.ring()  # the leaser may wait for other endpoints

    @property
    def pace(self) -> float | None:
        """Seconds that a delivery takes lately; None when there was none."""
        return self.spent / self.done if self.done else None

    def forget_pace(self) -> None:
        """Lease nothing ahead until deliveries have shown how fast they are."""
        self._ahead, self.spent, self.done = 0, 0.0, 0.0

    # Slots

    def resize(self, limit: int) -> None:
        """Have so many deliveries at once from now on; those under way go on."""
        if limit != self.limit:
            self.limit = limit
            if self._shares:
                self._shares.resize(max(1, limit), max(1, limit) * ELASTIC)

    def turn(self) -> None:
        """Take permits that became free, and use them: for what waits here, or to lease."""
        assert self.pool is not None
        self.pool.ask(self)
        if self.queue:
            self.rouse()
        if self.limit and not self.room.is_set():
            # The leaser runs after this. Until then no other source takes the permits that are meant for it.
            self.ask_for(max(0, self.limit + self.slow - self.in_slots))
            self.room.set()

    def ask_for(self, count: int) -> None:
        """A lease that may bring so many messages begins."""
        self.asked, self.asked_at = count, monotonic()

    def leased(self, *, all_of_them: bool) -> None:
        """A lease is over, and brought as many messages as it asked for, or fewer: then others may have its permits."""
        self.asked, self.hungry = 0, all_of_them
        if self.pool is not None and not all_of_them:
            self.pool.pass_on()

    @property
    def is_simple(self) -> bool:
        """Whether its messages are counted nowhere but here: no batches, no shares of endpoints, no other databases."""
        return self.pool is None and self._shares is None and self._batches is None

    @property
    def is_over(self) -> bool:
        """Whether as many deliveries are under way as there are permits."""
        return self.busy - self.slow >= self.limit

    def rouse(self) -> None:
        """Let slots begin with what waits, a few at a time."""
        while self.roused < ROUSED and self.roused < len(self.queue):
            if self.pool is not None and self.busy + self.roused - self.slow >= self.limit:
                return
            while self.idle:
                waiting = self.idle.pop()
                if not waiting.done():
                    waiting.set_result(None)
                    break
            else:
                if len(self.slots) >= self.concurrency + self.slow:
                    return
                name = f"menzil-slot-{self.name}"
                task = asyncio.create_task(slot(self), name=name, context=self.context.copy())
                self.slots.add(task)
                task.add_done_callback(self._slot_ended)
            self.roused += 1

    def _slot_ended(self, task: asyncio.Task[None]) -> None:
        """Let another slot do its work if it was cancelled between two messages, as by a timer that a handler left."""
        self.slots.discard(task)
        if self.queue:
            self.rouse()

    def let_go(self, held: Held, seconds: float | None = None) -> None:
        """It is not ours any more, but for its outcome."""
        if held in self.held:
            self.held.discard(held)
            self.shift.budget.leave(held)
            if held.line is not None and self._batches:
                self._batches.leave(held)
            elif self._shares:
                self._shares.leave(held.channel, seconds)
            del held.message  # the outcome may have to wait for the database, and the body would stay in memory

    # Stopping

    def hand_back(self, messages: list[Message], asked_at: float) -> None:
        """Hand back what was leased and never taken in."""
        for message in messages:
            self.abandon(Held(message, self, asked_at))

    def hand_back_waiting(self) -> int:
        """Hand back messages whose delivery has not begun."""
        waiting = [*self.queue, *(self._batches.waiting() if self._batches else [])]
        self.queue.clear()
        for held in waiting:
            self.abandon(held)
        return len(waiting)

    def stop_all(self) -> None:
        """Stop every delivery; each is handed back when it has stopped."""
        for held in list(self.held):
            self._stop(held)
        if self._batches:
            self._batches.stop()

    def abandon(self, held: Held) -> None:
        """Hand it back in any case."""
        self.let_go(held)
        held.lost = True
        self.shift.settler.put(held, outcomes.BACK)

    def give_up(self, held: Held) -> None:
        """The lease is gone: stop the delivery and drop what comes out of it."""
        held.lost = True
        self.let_go(held)
        if held.task is not None:
            self._stop(held)
        elif held in self.queue:
            self.queue.remove(held)
        elif held.line is not None and self._batches:
            self._batches.lost()

    def _stop(self, held: Held) -> None:
        if held.task is not None and not held.stopped:
            held.stopped = True
            held.task.cancel()

    async def close(self) -> None:
        """End the slots and the batches."""
        if self._batches:
            self._batches.stop()
        slots = list(self.slots)
        for task in slots:
            task.cancel()
        if slots:
            await asyncio.wait(slots, timeout=1)
        if self.pool is not None:
            self.pool.leave(self)
