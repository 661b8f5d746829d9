"""Messages to endpoints whose protocol takes many at once: one task, and one write, for each batch.

A batch is what waits for one endpoint, up to the size that its protocol names: no batch waits until it is full. An
endpoint has up to LANES batches under way. Messages in batches take no slots: a batch of hundreds costs about as much
as one delivery. `concurrency` bounds the batches under way instead, and slow ones make room as slow deliveries do.

An endpoint that hangs keeps its messages until its deadline, and large ones would fill the byte budget of the worker.
So an endpoint that holds as many bytes as are free is out: it is leased nothing until it holds less than half of what
is free. One such endpoint takes about half of the budget, two take two thirds, and some of it is always free. A lease
asks for so little that no endpoint gets more than MOST times what is free then. Messages that turn out larger than
expected are handed back; their endpoint is out until it holds nothing.

An endpoint that fails is leased nothing until the database knows of all its failures: by then the circuit may be open.
One that has not taken a message yet, or none of its last batch, is leased no more than FIRST messages before it does,
but for those that one lease brings. So an endpoint that is dead costs few tries, and others little time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any

from menzil.model.message import Message
from menzil.model.outcome import Complete, Fail, Outcome
from menzil.telemetry.tracing import CARRIED
from menzil.worker import outcomes
from menzil.worker.held import Held

if TYPE_CHECKING:
    from menzil.worker.source import Source

#: Batches under way for one endpoint.
LANES = 3
#: Bytes of bodies in one batch; a single larger message is a batch of its own.
BYTES = 4 * 1024 * 1024
#: How many times the free bytes of the budget an endpoint may hold: before it is out, and after the last lease.
SHARE, MOST = 1.0, 3.0
#: Seconds for which an endpoint that has all it can use is waited for before others are asked for. It is back sooner
#: as a rule, and a lease then serves the others, too; a lease for the others alone would bring nothing as a rule.
SOON = 0.05
#: Messages that an endpoint may hold before it has taken one.
FIRST = 50
#: Endpoints of which it is remembered that they took messages.
_ROOM = 10_000
#: An endpoint that is out for its bytes is back below this part of its share.
AGAIN = 0.5
#: Seconds after which a batch makes room for another, and how many times `concurrency` there may be then.
SLOW, ELASTIC = 1.0, 5

#: How many messages of an endpoint may be delivered together; 1 where its protocol takes them one by one.
Size = Callable[[str], int]
#: Delivers messages of one endpoint and returns an outcome for each, in their order.
CallMany = Callable[[Sequence[Message]], Awaitable[Sequence[Any]]]


class Line:
    """What this worker holds of one endpoint."""

    __slots__ = ("bytes", "channel", "flying", "held", "is_heavy", "is_out", "out_at", "size", "untold", "waiting")

    def __init__(self, channel: str) -> None:
        self.channel = channel
        self.size = 1
        self.waiting: dict[Held, None] = {}  # in the order of their coming
        self.flying = 0  # batches under way
        self.held = 0  # messages that wait or are under way
        self.bytes = 0  # of their bodies
        self.is_out = False  # it has as many as it can use, or too many bytes
        self.out_at = 0.0  # since when
        self.is_heavy = False  # it has too many bytes
        self.untold = 0  # failures that the database does not know yet


class Batches:
    """The batches of one source."""

    def __init__(self, source: Source, size: Size, call: CallMany) -> None:
        self._source = source
        self._size = size
        self._call = call
        self._lines: dict[str, Line] = {}
        self._flights: dict[asyncio.Task[None], tuple[float, list[Held]]] = {}  # when each began, and with what
        self._full: set[str] = set()  # endpoints of which messages were handed back; they are out until they hold none
        self._taking: set[str] = set()  # endpoints that took a message of their last batch
        self._wish = 0  # messages that the next lease may bring beyond the slots
        self.count = 0  # messages that wait or are under way

    # How much to lease

    @property
    def out(self) -> list[str]:
        """Endpoints that have as many messages here as they can use, too many bytes, or failures not settled yet."""
        return [line.channel for line in self._lines.values() if line.is_out or line.untold]

    @property
    def room(self) -> int:
        """How many messages may be leased beyond the slots: as many as the last lease shows that there are takers."""
        takers = [line for line in self._lines.values() if not (line.is_out or line.untold)]
        return min(sum(max(0, LANES * line.size - line.held) for line in takers), self._wish)

    @property
    def patience(self) -> float:
        """Seconds for which it is not worth asking for messages: endpoints that have all they can use are back soon."""
        if self.room or not self._lines:
            return 0.0
        latest = max(line.out_at if line.is_out else 0.0 for line in self._lines.values())
        return max(0.0, latest + SOON - monotonic())

    @property
    def fitting(self) -> float:
        """Bytes that a lease may bring: should all of them be for one endpoint, others have bytes left."""
        heaviest = max([line.bytes for line in self._lines.values() if not line.is_heavy], default=0)
        return max(0.0, (MOST * self._source.shift.budget.free - heaviest) / (1 + MOST))

    def takes(self, channel: str) -> bool:
        """Whether messages of this endpoint are delivered in batches."""
        return self._size(channel) > 1

    def sort(self, messages: list[Message]) -> tuple[list[Message], list[Message]]:
        """Return the messages that are delivered in batches, and those that need a slot each."""
        takes = {channel: self.takes(channel) for channel in {message.channel for message in messages}}
        if not any(takes.values()):
            return [], messages
        if all(takes.values()):
            return messages, []
        batched = [message for message in messages if takes[message.channel]]
        return batched, [message for message in messages if not takes[message.channel]]

    def leased(self, messages: Sequence[Message]) -> list[Message]:
        """A lease brought these messages for batches. Return those of them that are too many bytes for an endpoint."""
        self._wish = 2 * len(messages)
        free, held = self._source.shift.budget.free, {line.channel: line.bytes for line in self._lines.values()}
        total = sum([message.size for message in messages])
        if max(held.values(), default=0) + total <= MOST * (free - total):
            return []
        beyond = []
        for message in messages:
            channel, size = message.channel, message.size
            if channel in held and held[channel] + size > MOST * (free - size):
                beyond.append(message)
                self._full.add(channel)
            else:
                held[channel], free = held.get(channel, 0) + size, free - size
        return beyond

    # Delivering

    def take_in(self, new: Iterable[Held]) -> None:
        """Put what was leased in line."""
        for held in new:
            line = self._lines.get(held.channel)
            if line is None:
                line = self._lines[held.channel] = Line(held.channel)
            held.line = line
            line.waiting[held] = None
            line.held += 1
            line.bytes += held.size
            self.count += 1
        self.go()

    def go(self) -> None:
        """Start batches for what waits."""
        for line in list(self._lines.values()):
            line.size = max(1, self._size(line.channel))
            while line.waiting and line.flying < LANES and self._has_room():
                self._start(line)
            if not line.held:
                self._full.discard(line.channel)
                if not line.untold:
                    del self._lines[line.channel]
                    continue
            share = max(0, self._source.shift.budget.free) * (SHARE * AGAIN if line.is_heavy else SHARE)
            line.is_heavy = line.bytes > share or line.channel in self._full
            was_out, most = line.is_out, LANES * line.size if line.channel in self._taking else FIRST
            # It is back when the next lease may bring a whole batch.
            line.is_out = line.is_heavy or line.held >= most - (was_out and max(0, min(line.size, most) - 1))
            if line.is_out and not was_out:
                line.out_at = monotonic()

    def _has_room(self) -> bool:
        limit = monotonic() - SLOW
        young = sum(began >= limit for began, _ in self._flights.values())
        most = self._source.concurrency
        return young < most and len(self._flights) < most * ELASTIC

    def _start(self, line: Line) -> None:
        now, longest, size = monotonic(), self._source.lease * 2 / 3, 0
        batch: list[Held] = []
        lease: int | None = None
        for held in list(islice(line.waiting, line.size)):
            if now >= held.kept_at + longest:
                self._source.shift.keeper.lose(held, "it waited too long")
                continue
            size += held.size
            if batch and size > BYTES:
                break
            if held.batch != lease and batch and 2 * len(batch) >= line.size:
                break  # what one lease brought is settled by one row if it is delivered together
            lease = held.batch
            batch.append(held)
        for held in batch:
            del line.waiting[held]
        if not batch:
            return
        line.flying += 1
        task = asyncio.create_task(self._fly(line, batch), name=f"menzil-batch-{line.channel}")
        self._flights[task] = now, batch
        task.add_done_callback(lambda done: self._never_flew(done, line, batch))

    def _never_flew(self, task: asyncio.Task[None], line: Line, batch: list[Held]) -> None:
        """Make up for a task that was stopped before its first step: nothing of it has run, and its lane is free."""
        if self._flights.pop(task, None) is None:
            return  # it has run
        line.flying -= 1
        self._end(line, batch, [outcomes.BACK] * len(batch), 0.0)
        self.go()
        self._source.room.set()
        self._source.bell.ring()

    async def _fly(self, line: Line, batch: list[Held]) -> None:
        began, source, task = monotonic(), self._source, asyncio.current_task()
        batch = [held for held in batch if not held.lost]  # a heartbeat may have said so before this task began
        processes: list[Any] = []
        found: Sequence[Outcome] = []
        try:
            messages = [held.message for held in batch]
            spans = source.shift.spans
            processes = [spans.process(message, source.shift.name) for message in messages] if spans else []
            if processes:
                for held, process in zip(batch, processes, strict=True):
                    held.span = process.context
                CARRIED.set({process.message_id: process.carried for process in processes})
            if messages:
                found = read_all(await self._call(messages), line.channel, len(batch))
        except asyncio.CancelledError as error:
            # Stopped with the worker, or all leases are lost. Otherwise something inside was cancelled, not this task:
            # a failure like any other, since what is handed back comes again at once.
            is_stopped = task is not None and task.cancelling()
            found = [outcomes.BACK if is_stopped else outcomes.failure(error, source.shift.hide)] * len(batch)
        except Exception as error:
            # Without outcomes the messages would stay in our hands until the worker ends.
            found = [outcomes.failure(error, source.shift.hide)] * len(batch)
        finally:
            line.flying -= 1
            if task is not None:
                self._flights.pop(task, None)
        seconds = monotonic() - began
        for process, outcome in zip(processes, found, strict=False):
            process.over(outcome, seconds)
        self._end(line, batch, found, seconds)
        was_out = line.is_out
        self.go()
        source.room.set()
        if was_out and not line.is_out:
            source.bell.ring()  # the leaser may wait for other endpoints

    def _end(self, line: Line, batch: Sequence[Held], found: Sequence[Outcome], seconds: float) -> None:
        """A batch is over: settle what came out of it. What is completed, as a rule all of it, is let go at once."""
        source, done = self._source, []
        if outcomes.COMPLETE in found or any(isinstance(outcome, Complete) for outcome in found):
            if len(self._taking) >= _ROOM:
                self._taking.clear()
            self._taking.add(line.channel)
        elif found:
            self._taking.discard(line.channel)
        for held, outcome in zip(batch, found, strict=True):
            if outcome is outcomes.COMPLETE and not held.lost and held in source.held:
                done.append(held)
            else:
                self._end_one(held, outcome, seconds)
        if done:
            source.held.difference_update(done)
            line.held -= len(done)
            self.count -= len(done)
            line.bytes -= source.shift.budget.leave_all(done)
            for held in done:
                del held.message
            source.shift.tries.add(line.channel, seconds, len(done))
            source.shift.settler.put_done(done)

    def _end_one(self, held: Held, outcome: Outcome, seconds: float) -> None:
        if held.lost:
            return
        if isinstance(outcome, Fail):
            held.note_trace()
            if outcome.retry is not False:  # that one message is bad says nothing about the others
                held.await_settle()
        self._source.let_go(held)
        if outcome is not outcomes.BACK:
            self._source.shift.tries.add(held.channel, seconds)
        self._source.shift.settler.put(held, outcome)

    # Stopping

    def leave(self, held: Held) -> None:
        """A message is out of our hands. One that waits is taken out of its line."""
        line = held.line
        assert line is not None
        line.held -= 1
        line.bytes -= held.size
        self.count -= 1
        line.waiting.pop(held, None)

    def lost(self) -> None:
        """A lease is gone. A batch of which all leases are gone is stopped: others deliver its messages by now."""
        for task, (_, batch) in list(self._flights.items()):
            if all(held.lost for held in batch):
                task.cancel()

    def waiting(self) -> list[Held]:
        """Messages with which no batch has begun."""
        return [held for line in self._lines.values() for held in line.waiting]

    def stop(self) -> None:
        """Stop every batch; its messages are handed back."""
        for task in list(self._flights):
            task.cancel()


def read_all(results: object, channel: str, count: int) -> list[Outcome]:
    """Read what a protocol returned for a batch. Without one outcome for each message, none can be believed."""
    if not isinstance(results, list | tuple) or len(results) != count:
        said = f"{len(results)} outcomes" if isinstance(results, list | tuple) else f"a {type(results).__qualname__}"
        return [outcomes.unusable(f"The protocol of {channel} returned {said} for {count} messages.")] * count
    first = results[0] if results else None
    if type(first) is Complete and results.count(first) == count:  # as a rule all are completed, as one object says
        return [outcomes.read(first, channel)] * count
    return [outcomes.read(result, channel) for result in results]
