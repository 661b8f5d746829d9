"""Settles outcomes: all that piled up while the last round was under way, one transaction for each kind.

A settle locks the leases of its messages in one order, and so does a heartbeat. Two settles in one transaction would
lock them in another: messages of one lease may end in several ways.

No delivery waits for it. Outcomes that were kept from settling by a lost connection, or by what says nothing about them
(a full disk, rights that were revoked), are tried again while their lease lasts; then they are dropped and counted as
lost, and the message is delivered again. An outcome that the database refuses (a state too large, a time that never
comes) becomes a failure that says so, and does not affect other outcomes.

Completions without a response are most of all outcomes. They wait in a list of their own, and a leaser that is about to
ask for messages takes them along: message_next settles and leases in one call.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from operator import attrgetter
from time import monotonic
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.model.errors import ConnectionFailedError, MenzilError, PermissionDeniedError, SchemaMissingError
from menzil.model.outcome import Complete, Defer, Fail, LeaseOutcome, Outcome, Settlement
from menzil.ops import consuming, working
from menzil.ops.op import Op
from menzil.worker.held import Held
from menzil.worker.outcomes import BACK, COMPLETE, cleaned, failure

if TYPE_CHECKING:
    from menzil.worker.shift import Shift
    from menzil.worker.source import Source

#: Outcomes of one round, and how many may pile up before nothing more is leased.
ROUND, FULL = 1000, 4000

#: Refusals for a missing right until a round believes that everything is denied; halving a round takes ten.
ENOUGH = 16

#: Messages of one lease that are worth a round of their own.
LARGE = 100

#: What may pass and says nothing about an outcome: no connection, no room, no time, no right, no schema at the moment.
PASSING = (ConnectionFailedError, PermissionDeniedError, SchemaMissingError, psycopg.OperationalError)

_REFUSED = "The database refused to settle this"
_NO_SUCH_CHARACTER = "22P05"  # in the encoding of the database
_TOO_LATE = "it ended before its outcome was settled"
_by_id = attrgetter("id")
_VERBS: dict[type | None, str] = {Complete: "complete", Defer: "defer", Fail: "fail"}


class Settler:
    """Takes outcomes and tells the database."""

    def __init__(self, shift: Shift) -> None:
        self._shift = shift
        self._done: list[Held] = []  # completed, and there is no response to keep
        self._others: list[Held] = []
        self._under_way = 0
        self._trouble = ""  # why the last round failed, as the log has said it
        self._code: str | None = None  # its SQLSTATE
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()

    @property
    def count(self) -> int:
        """How many outcomes are not settled yet."""
        return len(self._done) + len(self._others) + self._under_way

    @property
    def trouble(self) -> str:
        """Why outcomes cannot be settled at the moment."""
        return self._trouble or "the database cannot be reached"

    @property
    def is_full(self) -> bool:
        """Whether it is time to stop leasing until the database has caught up."""
        return len(self._done) + len(self._others) >= FULL

    def put(self, held: Held, outcome: Outcome) -> None:
        """Settle this in the next round."""
        # The response is not compared: it may be an object of which nothing can be asked, such as an array of numpy.
        if type(outcome) is Complete and outcome.response is None:
            self.put_one(held)
            return
        try:
            held.outcome = cleaned(outcome, self._shift.hide)
        except Exception as error:  # of an object that the handler returned
            held.outcome = failure(error, self._shift.hide)
        self._others.append(held)
        if not self._some.is_set():
            self._some.set()
            self._none.clear()

    def put_one(self, held: Held) -> None:
        """Complete this in the next round; there is no response to keep."""
        held.outcome = COMPLETE
        self._done.append(held)
        if not self._some.is_set():
            self._some.set()
            self._none.clear()

    def put_done(self, done: Sequence[Held]) -> None:
        """Complete these in the next round; there are no responses to keep."""
        for held in done:
            held.outcome = COMPLETE
        self._done += done
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
            if not self._shift.lease.is_busy and any(source.room.is_set() for source in self._shift.sources):
                await asyncio.sleep(0)  # a leaser was woken too: it goes first and takes completions along
            for waiting in (self._others, self._done):  # a success takes back failures of the same moment
                await self._round(_by_kind(self._take(waiting)))

    async def _round(self, groups: list[list[Held]]) -> None:
        kept: list[Held] = []
        trouble: MenzilError | psycopg.Error | None = None
        while groups:
            group = groups.pop(0)
            try:
                await self._settle_permitted(group)
            except PermissionDeniedError as error:
                # Perhaps only these are denied, by a trigger: outcomes of other kinds do not wait for them.
                kept, trouble = kept + group, error
            except PASSING as error:
                kept, trouble = [*kept, *group, *(held for later in groups for held in later)], error
                break
        if trouble is None:
            if self._trouble and not any(held.uncertain for held in (*self._others, *self._done)):
                self._trouble, self._code = "", None
            return
        self._tell(trouble)
        self.keep(kept)
        await self._shift.settle.rest(0.5)

    async def _settle_permitted(self, group: list[Held]) -> None:
        """Settle what is permitted, and leave in the group what is denied, which is raised.

        A missing right mostly denies everything; a trigger may deny the outcome of one message, for ever.
        """
        parts, refusals = [list(group)], 0
        first: PermissionDeniedError | None = None
        while parts:
            part = parts.pop()
            try:
                await self._settle(part)
            except PermissionDeniedError as error:
                first, refusals = first or error, refusals + 1
                if refusals > ENOUGH:
                    break
                if len(part) > 1:
                    middle = len(part) // 2
                    # Either half first: when this gives up, the next round does not meet the same ones again.
                    parts += random.sample([part[:middle], part[middle:]], 2)
            else:
                refusals = -2 * ROUND  # others are settled: go on until each that is denied stands alone
                gone = set(part)
                group[:] = [held for held in group if held not in gone] if len(part) < len(group) else []
                self._end_round(part)
        if first is not None:
            raise first

    def _tell(self, error: MenzilError | psycopg.Error) -> None:
        """Say once why nothing is settled; of a lost connection its link has said it."""
        trouble = "" if isinstance(error, ConnectionFailedError) else str(error)
        code = error.sqlstate if trouble else None  # a trigger may say something else of each message
        if trouble and not (self._trouble and code == self._code):
            self._shift.log.error("settle_failed", error=trouble, then="it is tried again while the leases last")
        self._trouble, self._code = trouble, code

    # Completions that a leaser takes along

    def take(self) -> list[Held]:
        """Take completions that wait. The caller completes them and says `told`, or `keep` if that failed."""
        # What was kept once is settled by itself: if it is denied again, the call that leases would fail with it.
        return [] if self._done and self._done[0].uncertain else self._take(self._done)

    def traced(self, group: Sequence[Held]) -> AbstractContextManager[object]:
        """Make a span for the settle inside, of outcomes of one kind, where deliveries are traced."""
        shift = self._shift
        if shift.spans is None:
            return nullcontext()
        how, contexts = _VERBS[type(group[0].outcome)], [held.span for held in group]
        return shift.spans.settle(how, group, worker=shift.name, contexts=contexts, where=shift.address.where)

    def told(self, done: list[Held], late: list[LeaseOutcome], source: Source) -> None:
        """These were completed, but for those that are late, by a call that leased for `source` afterwards."""
        self._count_done(done, late)
        self._end_round(done, source)

    def keep(self, batch: list[Held]) -> None:
        """The call failed, and may have come through all the same: tell them again while their lease lasts."""
        now = monotonic()
        for held in batch:
            held.uncertain = True
            if held.ends_at <= now:
                self._drop(held, "the database did not settle it while it lasted")
        # Each to its own list: an answer that was made plainer is a completion now, and must not take others along.
        left = [held for held in batch if held.ends_at > now]
        self._done[:0] = [held for held in left if held.outcome is COMPLETE]
        self._others[:0] = [held for held in left if held.outcome is not COMPLETE]
        self._end_round(batch)

    def _take(self, waiting: list[Held]) -> list[Held]:
        cut = _whole(waiting)
        batch, later = waiting[:cut], waiting[cut:]
        if len(set(map(_by_id, batch))) < len(batch):
            # A message that came back to this worker while an old lease of it was still around: one token per round.
            first: dict[int, Held] = {}
            later[:0] = [held for held in batch if first.setdefault(held.id, held) is not held]
            batch = list(first.values())
        waiting[:] = later
        self._under_way += len(batch)
        self._look_around()
        batch.sort(key=_by_id)
        return batch

    def _end_round(self, batch: list[Held], asker: Source | None = None) -> None:
        self._under_way -= len(batch)
        self._look_around()
        self._after({held.source for held in batch if held.source is not asker})

    def _look_around(self) -> None:
        if self._done or self._others:
            self._some.set()
        else:
            self._some.clear()
        if not self.count:
            self._none.set()

    # One round

    async def _settle(self, group: list[Held]) -> None:
        """Settle outcomes of one kind."""
        try:
            op = _op(group)
            with self.traced(group):
                if isinstance(group[0].outcome, Complete):
                    answers = await self._shift.settle.run(op)
                else:
                    _, answers = await self._shift.settle.run_all([working.hurry(), op])
        except PASSING:
            raise
        except Exception as error:  # also what cannot be written as JSON
            await self._settle_apart(group, error)
            return
        self._count(group, answers)

    async def _settle_apart(self, batch: list[Held], error: Exception) -> None:
        """One of them is refused: find it by halves, and fail it with what the database said."""
        if len(batch) > 1:
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                await self._settle(half)
            return
        (held,) = batch
        outcome = held.outcome
        plainer = _in_ascii(outcome) if getattr(error, "sqlstate", None) == _NO_SUCH_CHARACTER else None
        if plainer is not None:
            held.outcome = plainer
            await self._settle(batch)
            return
        sentence = error.message if isinstance(error, MenzilError) else str(error)
        self._shift.log.error("settle_refused", error=sentence, **held.facts())
        if isinstance(outcome, Fail) and outcome.reason.startswith(_REFUSED):
            self._drop(held, "the database refuses every answer")
            return
        kind = type(outcome).__name__
        held.outcome = Fail(f"{_REFUSED} {kind}: {self._shift.hide(sentence)}")
        await self._settle(batch)

    def _drop(self, held: Held, why: str) -> None:
        held.told()
        self._shift.tally.lost += 1
        self._shift.log.warning("lease_lost", why=why, **held.facts())

    def _count_done(self, done: Sequence[Held], late: Sequence[LeaseOutcome]) -> None:
        self._shift.tally.delivered += len(done)
        if not late:
            return
        said = {answer.id: answer.outcome for answer in late}
        for held in done:
            # After a round whose answer never came, a message that is gone went by that round.
            if held.id in said and not (held.uncertain and said[held.id] is Settlement.UNKNOWN):
                self._shift.tally.delivered -= 1
                self._drop(held, _TOO_LATE)

    def _count(self, group: Sequence[Held], answers: list[LeaseOutcome]) -> None:
        if isinstance(group[0].outcome, Complete):
            self._count_done(group, answers)
            return
        for held, answer in zip(group, answers, strict=True):
            held.told()
            if not answer.ok:
                self._drop(held, _TOO_LATE)
            elif isinstance(held.outcome, Fail):
                self._failed(held, held.outcome, answer.outcome)
            elif held.outcome is BACK:
                self._shift.tally.handed_back += 1
            else:
                self._shift.tally.deferred += 1

    def _failed(self, held: Held, outcome: Fail, answer: Settlement) -> None:
        self._shift.tally.failed += 1
        self._shift.tally.dead += answer is Settlement.DEAD
        log, facts = self._shift.log, held.facts()
        reason = outcome.reason
        if isinstance(outcome.response, dict) and "status" in outcome.response:
            reason = reason.partition(": ")[0]  # the rest is what the receiver said, and it may repeat the payload
        log.warning("failed", **facts, then=answer.value, reason=reason, trace=held.trace)

    def _after(self, sources: set[Source]) -> None:
        """What was settled may have made room here, or made something ready: the next of its ordering key."""
        self._shift.happened += 1
        for source in self._shift.sources:
            source.room.set()  # every source waits while too many outcomes do, also one that has none among them
        for source in sources:
            source.bell.ring()


def _whole(waiting: list[Held]) -> int:
    """How many to settle in one round. A lease that was delivered in one batch goes alone: it ends by one row."""
    if not waiting or waiting[0].line is None or waiting[0].outcome is not COMPLETE:
        return ROUND
    lease, count = waiting[0].batch, 0
    for held in waiting[:ROUND]:
        if held.batch != lease:
            break
        count += 1
    return count if count >= LARGE else ROUND


def _in_ascii(outcome: Outcome | None) -> Outcome | None:
    """The outcome in characters that every encoding has, without what the other side answered; None if it is so."""
    if isinstance(outcome, Complete) and outcome.response is not None:
        return COMPLETE  # what was delivered must not be delivered again for a character in the answer
    if isinstance(outcome, Fail) and not (outcome.reason.isascii() and outcome.response is None):
        reason = outcome.reason.encode("ascii", "backslashreplace").decode()
        return replace(outcome, reason=reason, response=None)
    return None


def _by_kind(batch: list[Held]) -> list[list[Held]]:
    if not batch or batch[0].outcome is COMPLETE:  # which wait in a list of their own
        return [batch] if batch else []
    kinds = ([held for held in batch if isinstance(held.outcome, kind)] for kind in (Fail, Complete, Defer))
    return [group for group in kinds if group]


def _op(group: Sequence[Held]) -> Op[Any]:
    if group[0].outcome is COMPLETE:
        return working.complete(group)
    outcomes: list[Any] = [held.outcome for held in group]  # all of one class
    if isinstance(outcomes[0], Complete):
        return working.complete(group, [outcome.response for outcome in outcomes])
    many = consuming.fail_many if isinstance(outcomes[0], Fail) else consuming.defer_many
    return many(zip(group, outcomes, strict=True))
