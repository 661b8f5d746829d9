"""DEQUEUE and what follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from menzil.client.base import AsyncClient
from menzil.model.durations import Seconds
from menzil.model.message import Message
from menzil.model.options import Leased
from menzil.model.outcome import Defer, Fail, LeaseOutcome, Settlement
from menzil.ops import consuming as ops
from menzil.ops.borrow import AsyncBorrowed
from menzil.ops.op import Op

T = TypeVar("T")


class AsyncConsuming(AsyncClient):
    """Messages on their way out. A single call raises when the lease was lost; a batch says so for each of them."""

    async def _settle(self, how: str, leases: Sequence[Leased], op: Op[T], conn: AsyncBorrowed | None) -> T:
        spans = self._spans()
        if spans is None or not leases:
            return await self._run(op, conn)
        with spans.settle(how, leases) as settling:
            answer = await self._run(op, conn)
            settling.at(self._where(conn))
            return answer

    async def dequeue(
        self,
        limit: int = 1,
        lease: Seconds = 30,
        channels: str | Iterable[str] | None = None,
        *,
        worker: str | None = None,
        apart: bool = False,
        conn: AsyncBorrowed | None = None,
    ) -> list[Message]:
        """Take up to `limit` messages under a lease of `lease` seconds; [] when there is nothing to do.

        Takes from `channels`, or from all of them. On your own `conn` the messages are yours when you commit, and their
        channels wait for that: commit at once. Messages of one dequeue wait for each other's settles; with `apart` they
        do not, for messages that you settle in transactions of your own that stay open.
        """
        op = ops.dequeue(limit, lease, channels, worker, apart=apart, loads=self._loads)
        spans = self._spans()
        if spans is None:
            return await self._run(op, conn)
        receiving = spans.receiving()
        return receiving.received(await self._run(op, conn), self._where(conn))

    async def next(
        self,
        done: Iterable[Leased] = (),
        limit: int = 1,
        lease: Seconds = 30,
        channels: str | Iterable[str] | None = None,
        *,
        worker: str | None = None,
        conn: AsyncBorrowed | None = None,
    ) -> tuple[list[Message], list[LeaseOutcome]]:
        """End the messages of `done` and take the next ones, in one statement.

        For a loop, each time with the batch before; `late` are those of `done` whose lease was lost.
        Beside a busy channel, messages of other channels and priorities may come 100 ms late.
        """
        done = list(done)
        op = ops.following(done, limit, lease, channels, worker, loads=self._loads)
        spans = self._spans()
        if spans is None:
            return await self._run(op, conn)
        receiving = spans.receiving()
        messages, late = await self._settle("complete", done, op, conn)
        return receiving.received(messages, self._where(conn)), late

    async def complete(self, message: Leased, *, conn: AsyncBorrowed | None = None) -> None:
        """The work is done: end the message."""
        await self._settle("complete", [message], ops.complete(message), conn)

    async def complete_many(
        self, messages: Iterable[Leased], *, conn: AsyncBorrowed | None = None
    ) -> list[LeaseOutcome]:
        """End many messages in one statement; one answer for each, in the same order."""
        messages = list(messages)
        return await self._settle("complete", messages, ops.complete_many(messages), conn)

    async def defer(
        self,
        message: Leased,
        *,
        delay: Seconds | None = None,
        until: datetime | None = None,
        state: bytes | None = None,
        conn: AsyncBorrowed | None = None,
    ) -> None:
        """Put the message back: due now, after `delay` seconds, or at `until`; costs no retry. `state` is kept."""
        await self._settle("defer", [message], ops.defer(message, delay=delay, until=until, state=state), conn)

    async def defer_many(
        self, items: Iterable[tuple[Leased, Defer]], *, conn: AsyncBorrowed | None = None
    ) -> list[LeaseOutcome]:
        """Put many messages back in one statement; one answer for each, in the same order."""
        items = list(items)
        return await self._settle("defer", [lease for lease, _ in items], ops.defer_many(items), conn)

    async def heartbeat(self, message: Leased, lease: Seconds = 30, *, conn: AsyncBorrowed | None = None) -> None:
        """Keep the lease for at least `lease` seconds from now; it is never shortened."""
        await self._run(ops.heartbeat(message, lease), conn)

    async def heartbeat_many(
        self, messages: Iterable[Leased], lease: Seconds = 30, *, conn: AsyncBorrowed | None = None
    ) -> list[LeaseOutcome]:
        """Keep many leases in one statement; one answer for each, in the same order."""
        return await self._run(ops.heartbeat_many(messages, lease), conn)

    async def fail(
        self,
        message: Leased,
        error: str,
        *,
        retry_after: Seconds | None = None,
        permanent: bool = False,
        disable: bool = False,
        conn: AsyncBorrowed | None = None,
    ) -> Settlement:
        """The work went wrong: try again later (RETRY) or give up (DEAD), as the retry policy says.

        `retry_after` replaces the delay of the policy, `permanent` gives up now, `disable` also disables the endpoint.
        """
        op = ops.fail(message, error, retry_after=retry_after, permanent=permanent, disable=disable)
        return await self._settle("fail", [message], op, conn)

    async def fail_many(
        self, items: Iterable[tuple[Leased, Fail]], *, conn: AsyncBorrowed | None = None
    ) -> list[LeaseOutcome]:
        """Fail many messages in one statement; one answer for each, in the same order."""
        items = list(items)
        return await self._settle("fail", [lease for lease, _ in items], ops.fail_many(items), conn)
