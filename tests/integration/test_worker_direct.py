"""What the short way of a worker's connection must do as well as a cursor does."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

import menzil
from menzil.ops.op import Op, integer
from menzil.ops.preparing import Preparing
from menzil.worker.address import Address, Conn
from menzil.worker.link import Link
from menzil.worker.log import Hide, Log

#: More often than a statement goes unprepared.
OFTEN = 7
LENGTH: Callable[[str], Op[int]] = lambda text: Op("select length(%s::text)", (text,), integer)  # noqa: E731
PID = Op("select pg_backend_pid()", (), integer)
NAMES: Op[list[Any]] = Op("select name from pg_prepared_statements where statement like 'select length%%'", (), list)


def on_a_link(db: str, story: Callable[[Link], Awaitable[None]], *, prepare: bool = True) -> None:
    async def work() -> None:
        link = Link("upkeep", Address(db, Preparing(prepare, lambda _: None)), Log(Hide([])))
        try:
            await story(link)
        finally:
            await link.close()

    asyncio.run(work())


@pytest.mark.parametrize(("prepare", "count"), [(True, 1), (False, 0)])
def test_what_is_asked_often_is_prepared_unless_it_must_not(db: str, prepare: bool, count: int) -> None:
    async def story(link: Link) -> None:
        assert [await link.run(LENGTH("x" * number)) for number in range(OFTEN)] == list(range(OFTEN))
        prepared = await link.run(NAMES)
        assert len(prepared) == count

    on_a_link(db, story, prepare=prepare)


def test_more_than_the_socket_takes_at_once_arrives_whole_both_ways(db: str) -> None:
    text = "ä€" * 4_000_000

    async def story(link: Link) -> None:
        echo = Op("select %s::text", (text,), lambda rows: rows[0][0])
        assert await link.run(echo) == text

    on_a_link(db, story)


def test_an_error_leaves_the_connection_fit_for_the_next_call(db: str) -> None:
    refused = Op("select menzil.send(%s::text, '1'::jsonb)", ("nowhere",), integer)

    async def story(link: Link) -> None:
        first = await link.run(PID)
        for _ in range(OFTEN):
            with pytest.raises(menzil.UnknownNameError):
                await link.run(refused)
        with pytest.raises(menzil.InvalidValueError, match="NUL"):
            await link.run(LENGTH("a\0b"))
        assert await link.run(PID) == first

    on_a_link(db, story)


def test_a_call_that_is_cancelled_is_ended_in_the_server_and_its_connection_stays(db: str) -> None:
    slow: Op[Any] = Op("select pg_sleep(600), 'cancelled'", (), list)

    async def story(link: Link) -> None:
        first, began = await link.run(PID), time.monotonic()
        task = asyncio.create_task(link.run(slow))
        async with await psycopg.AsyncConnection.connect(db, autocommit=True) as conn:
            active = "select count(*) from pg_stat_activity where pid = %s and state = 'active'"
            while await (await conn.execute(active, (first,))).fetchone() != (1,):
                assert time.monotonic() < began + 60
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await link.run(PID) == first

    on_a_link(db, story)


def test_a_server_process_that_ends_in_mid_call_is_an_error_and_the_next_call_works(db: str) -> None:
    ends: Op[Any] = Op("select pg_terminate_backend(pg_backend_pid())", (), list)

    async def story(link: Link) -> None:
        first = await link.run(PID)
        with pytest.raises(menzil.ConnectionFailedError):
            await link.run(ends)
        assert await link.run(PID) != first

    on_a_link(db, story)


def test_a_connection_that_is_closed_is_not_kept_in_memory(db: str) -> None:
    gone: list[weakref.ref[Conn]] = []

    async def story(link: Link) -> None:
        await link.run(PID)
        gone.append(weakref.ref(await link.connection()))

    on_a_link(db, story)
    gc.collect()
    assert [one() for one in gone] == [None]
