"""A slot: a task that takes one message after the other from what its source has leased, and settles what comes out."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING

from menzil.model.outcome import Fail, Outcome
from menzil.worker import outcomes, trace
from menzil.worker.held import Held
from menzil.worker.outcomes import COMPLETE, Settled

if TYPE_CHECKING:
    from menzil.worker.source import Source

#: Seconds a slot may go on without letting others run.
TURN = 0.005
#: Slots that are being roused at the same time.
ROUSED = 4


async def slot(source: Source) -> None:
    """Deliver what waits, then wait for more."""
    # Looked up once: what this loop does for a message is most of what the worker does for it.
    shift, queue, mine, room = source.shift, source.queue, source.held, source.room
    pick, pool, context, is_simple = source.pick, source.pool, source.context, source.is_simple
    spans, budget, add, put = shift.spans, shift.budget, shift.tries.add, shift.settler.put_one
    loop, longest = asyncio.get_running_loop(), source.lease * 2 / 3
    task = asyncio.current_task()
    assert task is not None
    while True:
        source.roused -= 1
        now = monotonic()
        turn_ends = now + TURN
        while queue:
            if pool is not None and source.is_over:
                break  # the permit of this slot has gone to another database
            held = queue.popleft()
            if source.roused < ROUSED and queue:
                source.rouse()
            if now >= held.kept_at + longest:
                shift.keeper.lose(held, "it waited too long")
                continue
            held.task = task
            outcome: Outcome | Settled
            try:
                if spans is None:
                    result = await pick(held.channel)(held.message)
                else:
                    with spans.process(held.message, shift.name) as process:
                        held.span = process.context
                        result = process.returned(await pick(held.channel)(held.message))
                if result is None:
                    outcome = COMPLETE
                else:
                    outcome = result if type(result) is Settled else outcomes.read(result, held.channel)
            except asyncio.CancelledError as error:
                # Unless it was stopped, something inside was cancelled, not this task: a failure like any other.
                outcome = outcomes.BACK if held.stopped else _raised(source, held, error)
            except BaseException as error:
                outcome = _raised(source, held, error)
            began, now = now, monotonic()
            if outcome is COMPLETE and is_simple and not held.lost:
                # What _end does, for most messages: its calls and lookups would cost more than a quick handler.
                held.task = None
                source.spent += now - began
                source.done += 1
                mine.discard(held)
                budget.held -= held.size
                del held.message
                add(held.channel, now - began)
                put(held)
                if not room.is_set() and source.places():
                    room.set()
            else:
                _end(source, held, outcome, now - began)
            try:
                is_used_up = held.stopped or task.cancelling() or copy_context() != context
            except Exception:  # it holds values that cannot be compared, such as arrays of numpy
                is_used_up = True
            if is_used_up:
                # Another slot takes the place of one that was cancelled, also by its own handler, or whose handler set
                # context variables: the next message sees neither. A task for each message would cost several times
                # as much.
                source.slots.discard(task)
                source.rouse()
                return
            if now > turn_ends and queue:
                await asyncio.sleep(0)
                now = monotonic()
                turn_ends = now + TURN
        waiting = loop.create_future()
        source.idle.append(waiting)
        await waiting


def _raised(source: Source, held: Held, error: BaseException) -> Fail:
    held.trace = trace.full(error, source.shift.hide)
    return outcomes.failure(error, source.shift.hide)


def _end(source: Source, held: Held, outcome: Outcome | Settled, seconds: float) -> None:
    """The delivery is over: settle what came out of it."""
    held.task = None
    if not held.lost:
        source.spent += seconds
        source.done += 1
        if isinstance(outcome, Fail):
            held.note_trace()
        source.let_go(held, seconds)
        if outcome is not outcomes.BACK:
            source.shift.tries.add(held.channel, seconds)
        if isinstance(outcome, Settled):
            source.shift.settler.note(held, outcome.outcome)
        else:
            source.shift.settler.put(held, outcome)
    if source.pool is not None and source.pool.line:
        source.pool.ended(source)
    # A source that gave its last permit away lets its leaser ask, which puts it in line.
    if not source.room.is_set() and (source.places() or not source.limit):
        source.room.set()
