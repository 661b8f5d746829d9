"""The functions of menzil.testing for tests that are async: the same, awaited."""

from __future__ import annotations

import asyncio
from time import monotonic
from types import TracebackType
from typing import Any, Self

import psycopg

from menzil.model.durations import Seconds, in_seconds
from menzil.model.errors import UsageError
from menzil.ops import testing, working
from menzil.ops.borrow import AsyncBorrowed, is_async, run_on_async
from menzil.ops.op import Op
from menzil.testing import firing
from menzil.testing.asserting import NAMES, PAUSE, check_count, failure, refuse_unknown
from menzil.testing.draining import drain_async as drain
from menzil.testing.here import here
from menzil.testing.performing import perform_async as perform
from menzil.testing.sent import ANY, Sent
from menzil.testing.wanted import Wanted

__all__ = ["all_sent", "assert_sent", "drain", "fire", "perform", "refute_sent"]


class _Look:
    def __init__(self, conn: AsyncBorrowed | None, dsn: str | None, what: str) -> None:
        if conn is not None and not is_async(conn):
            raise UsageError("This connection is not async.", hint=f"import {what} from menzil.testing")
        self._conn = conn
        self._dsn = "" if conn is not None else here(dsn, what)
        self._own: psycopg.AsyncConnection[Any] | None = None

    async def __aenter__(self) -> Self:
        if self._conn is None:
            self._own = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._own is not None:
            await self._own.close()

    async def _run(self, op: Op[Any]) -> Any:
        conn = self._conn if self._conn is not None else self._own
        assert conn is not None
        return await run_on_async(conn, op)

    async def sent(self, channel: str | None) -> list[Sent]:
        return [Sent.of(record) for record in await self._run(testing.sent(channel))]

    async def names(self) -> list[str]:
        names: list[str] = await self._run(working.channel_names(NAMES))
        return names


async def assert_sent(
    channel: str,
    payload: Any = ANY,
    *,
    count: int | None = None,
    within: Seconds = 0,
    conn: AsyncBorrowed | None = None,
    dsn: str | None = None,
    **words: Any,
) -> Sent:
    """Fail unless such a message was sent; see menzil.testing.assert_sent."""
    wanted, ends = Wanted(channel, payload, words, conn is not None), monotonic() + in_seconds("within", within)
    check_count(count)
    async with _Look(conn, dsn, "assert_sent") as look:
        while True:
            sent = await look.sent(channel)
            found = wanted.among(sent)
            if found and count in (None, len(found)):
                return found[0]
            if monotonic() >= ends:
                break
            await asyncio.sleep(PAUSE)
        names = [] if sent else await look.names()
    raise AssertionError(failure(wanted, found, sent, names, count))


async def refute_sent(
    channel: str,
    payload: Any = ANY,
    *,
    within: Seconds = 0,
    conn: AsyncBorrowed | None = None,
    dsn: str | None = None,
    **words: Any,
) -> None:
    """Fail if such a message was sent; see menzil.testing.refute_sent."""
    wanted, ends = Wanted(channel, payload, words, conn is not None), monotonic() + in_seconds("within", within)
    async with _Look(conn, dsn, "refute_sent") as look:
        refuse_unknown(wanted, await look.names())
        while True:
            if found := wanted.among(await look.sent(channel)):
                raise AssertionError(wanted.unwanted(found))
            if monotonic() >= ends:
                return
            await asyncio.sleep(PAUSE)


async def all_sent(
    channel: str | None = None,
    payload: Any = ANY,
    *,
    conn: AsyncBorrowed | None = None,
    dsn: str | None = None,
    **words: Any,
) -> list[Sent]:
    """Every message that was sent, or every one like this, the oldest first."""
    wanted = Wanted(channel or "", payload, words, conn is not None)
    async with _Look(conn, dsn, "all_sent") as look:
        return wanted.among(await look.sent(channel))


async def fire(name: str, *, dsn: str | None = None) -> int:
    """Let the schedule send its message now; return its id."""
    return await asyncio.to_thread(firing.fire, name, dsn=here(dsn, "fire"))
