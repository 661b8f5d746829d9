"""drain: the real worker of an app, in this process, until nothing is left to do; in a hurry, nothing waits either."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from menzil.model.errors import UnknownNameError, UsageError
from menzil.model.message import Message
from menzil.ops import messages as message_ops
from menzil.ops import testing
from menzil.testing.here import here
from menzil.worker import Tally, Worker
from menzil.worker.hooks import Hooks
from menzil.worker.shift import Shift

#: How often one message may be tried, and how many tries a drain may take.
TRIES, LIMIT = 50, 10_000


class EndlessError(AssertionError):
    """A drain came to no end."""


@dataclass(frozen=True, slots=True)
class HandlerError:
    """What a handler raised, and about which message."""

    message_id: int
    channel: str
    attempt: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain did: counts of tries by how they ended, what still waits, and what handlers raised."""

    completed: int
    retried: int
    deferred: int
    dead: int
    waiting: int
    errors: list[HandlerError] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Bounds:
    hurry: bool
    tries: int
    limit: int


class Draining(Shift):
    """A shift that ends when nothing is due; or, in a hurry, when nothing waits for a time any more."""

    def __init__(self, dsn: str, app: Worker, channels: Sequence[str] | None, bounds: _Bounds) -> None:
        self.errors: list[HandlerError] = []
        options = app._options if channels is None else replace(app._options, channels=list(channels))
        options.check()
        super().__init__(dsn, app._handlers, options, self._hearing(app._hooks), once=True)
        self._bounds = bounds
        self._seen: Counter[int] = Counter()
        self._seen_before = -1  # tries when circuits were reset last
        self._hurrying: asyncio.Task[None] | None = None
        self.endless: str | None = None
        self.left = 0

    def _hearing(self, hooks: Hooks) -> Hooks:
        async def hear(message: Message, error: BaseException) -> None:
            self.errors.append(HandlerError(message.id, message.channel, message.attempt, error))

        return replace(hooks, on_error=[*hooks.on_error, hear])

    def leased(self, messages: list[Message], seconds: float) -> None:
        """Count tries, and stop when there are too many."""
        super().leased(messages, seconds)
        for message in messages:
            self._seen[message.id] += 1
            if self._seen[message.id] > self._bounds.tries and self.endless is None:
                self.endless = (
                    f"Message {message.id} of channel {message.channel!r} was tried {self._bounds.tries} times and "
                    "came back each time. Let it end, or give drain(tries=…) more."
                )
        if self._seen.total() > self._bounds.limit and self.endless is None:
            self.endless = (
                f"The drain took {self._bounds.limit} tries and there is still work. "
                "Do handlers send messages to each other? If not, give drain(limit=…) more."
            )
        if self.endless is not None:
            self.stop(force=True)

    def ran_dry(self) -> None:
        """Nothing is due: make due what waits, or stop."""
        if self._stop.is_set() or (self._hurrying is not None and not self._hurrying.done()):
            return
        self._hurrying = self._guard(self._hurry())

    async def _hurry(self) -> None:
        names, endpoints = self._whose()
        if self._bounds.hurry:
            count = await self.upkeep.run(testing.hurry(names, endpoints=endpoints))
            if self._seen.total() != self._seen_before:
                # Unless nothing was tried since: then something else than a circuit keeps the messages.
                self._seen_before = self._seen.total()
                count += await self.upkeep.run(testing.end_rests(names, endpoints=endpoints))
            if count:
                self.happened += 1
                self.wake.ring()
                return
        self.left = await self.upkeep.run(testing.waiting(names, endpoints=endpoints))
        self.stop()

    def _whose(self) -> tuple[list[str], bool]:
        names = {name for source in self.sources for name in source.channels or ()}
        return sorted(names), any(source.endpoints for source in self.sources)

    async def drained(self) -> Drained:
        """Run, and say what was done. What a handler raised about a message that did not complete after all is kept."""
        tally: Tally = await self.run()
        if self.endless is not None:
            raise EndlessError(self.endless) from (self.errors[-1].error if self.errors else None)
        return Drained(
            tally.delivered, tally.failed - tally.dead, tally.deferred, tally.dead, self.left, list(self.errors)
        )

    async def not_completed(self) -> HandlerError | None:
        """The last error about a message that has not completed."""
        try:
            for one in reversed(self.errors):
                with suppress(UnknownNameError):
                    if (await self.upkeep.run(message_ops.status(one.message_id))).status != "completed":
                        return one
        finally:
            await self.upkeep.close()
        return None


async def drain_async(
    app: Worker,
    *,
    hurry: bool = False,
    channels: Sequence[str] | None = None,
    tries: int = TRIES,
    limit: int = LIMIT,
    raise_errors: bool = True,
    dsn: str | None = None,
) -> Drained:
    """Let the app work on the test's database until nothing is left to do; see menzil.testing.drain."""
    if not isinstance(app, Worker):
        raise UsageError(f"drain takes a menzil.Worker, not {type(app).__name__}.")
    draining = Draining(here(dsn, "drain"), app, channels, _Bounds(hurry, tries, limit))
    done = await draining.drained()
    if raise_errors and (raised := await draining.not_completed()):
        raised.error.add_note(
            f"raised by the handler of message {raised.message_id} of channel {raised.channel!r}, "
            f"attempt {raised.attempt}; drain(raise_errors=False) returns it instead"
        )
        raise raised.error
    return done


def drain(
    app: Worker,
    *,
    hurry: bool = False,
    channels: Sequence[str] | None = None,
    tries: int = TRIES,
    limit: int = LIMIT,
    raise_errors: bool = True,
    dsn: str | None = None,
) -> Drained:
    """Let the app work on the test's database until nothing is left to do.

    It is the real worker with real leases, in this process: handlers see what was committed.

    hurry         retries, delays, defers and rests of endpoints are over at once
    channels      only these
    tries         how often one message may be tried, so that one that comes back for ever ends the test
    limit         how many tries there may be altogether
    raise_errors  raise what a handler raised last about a message that has not completed in the end
    """
    refuse_loop("drain")
    with asyncio.Runner() as runner:
        return runner.run(
            drain_async(
                app, hurry=hurry, channels=channels, tries=tries, limit=limit, raise_errors=raise_errors, dsn=dsn
            )
        )


def refuse_loop(what: str) -> None:
    """Refuse to be called inside an event loop, which would stand still meanwhile."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise UsageError(f"{what} was called in an event loop.", hint=f"await the {what} of menzil.testing.aio")
