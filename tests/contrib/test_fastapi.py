"""FastAPI and Starlette: what starts and ends with an application. tests/integration/test_examples.py serves one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import menzil
from menzil.contrib.fastapi import lifespan, queue
from menzil.model.errors import ConnectionFailedError, SchemaMissingError, UsageError
from menzil.worker.shift import Shift


def test_a_worker_inside_an_application_finishes_what_is_under_way(db: str) -> None:
    mq, worker = menzil.AsyncMenzil(db), menzil.Worker(db, endpoints=False)
    order: list[str] = []
    begun = asyncio.Event()

    @worker.handler("billing")
    async def bill(message: menzil.Message) -> None:
        begun.set()
        await stopping.wait()
        order.append("billed")

    stopping = asyncio.Event()

    @asynccontextmanager
    async def inner(app: Any) -> AsyncIterator[dict[str, str]]:
        yield {"state": app}
        order.append("inner")
        stopping.set()

    async def live() -> None:
        async with lifespan(mq, worker=worker, inner=inner)("the application") as state:
            assert state == {"state": "the application"}
            assert worker.started
            assert await queue(mq)() is mq
            await mq.channel_set("billing")
            await mq.send("billing", 1)
            await asyncio.wait_for(begun.wait(), 30)

    for _ in range(2):  # a test starts an application again, in another loop
        begun, stopping = asyncio.Event(), asyncio.Event()
        asyncio.run(live())
    assert order == ["inner", "billed"] * 2
    with menzil.Menzil(db) as sync:
        assert [sync.status(number).status for number in (1, 2)] == ["completed"] * 2


def test_an_application_does_not_start_without_its_queue(fresh_db: str) -> None:
    async def live(**parts: Any) -> None:
        async with lifespan(**parts)(None):
            pytest.fail("it started")

    with pytest.raises(SchemaMissingError):
        asyncio.run(live(mq=menzil.AsyncMenzil(fresh_db)))
    with pytest.raises(ConnectionFailedError):
        asyncio.run(live(mq=menzil.AsyncMenzil("postgresql://127.0.0.1:1/nowhere")))
    with pytest.raises(SchemaMissingError):
        asyncio.run(live(worker=menzil.Worker(fresh_db)))
    with pytest.raises(UsageError, match="AsyncMenzil"):
        lifespan(menzil.Menzil(fresh_db))  # type: ignore[arg-type]


def test_a_worker_that_ends_while_the_application_runs_is_told_in_the_log(
    db: str, caplog: pytest.LogCaptureFixture
) -> None:
    worker = menzil.Worker(db)

    async def live() -> None:
        async with lifespan(worker=worker)(None):
            shift = worker._shift
            assert isinstance(shift, Shift)
            shift.broken = RuntimeError("a part broke")
            shift.stop()
            async with asyncio.timeout(30):
                while worker.started:
                    await asyncio.sleep(0.01)

    with caplog.at_level(logging.ERROR, "menzil.fastapi"):
        asyncio.run(live())
    assert "no message is handled any more" in caplog.text


def test_a_client_that_would_stop_the_event_loop_is_refused_when_the_application_is_written() -> None:
    with menzil.Menzil("host=127.0.0.1 port=1") as mq:
        for written in (lambda: queue(mq), lambda: lifespan(mq)):  # type: ignore[arg-type]
            with pytest.raises(UsageError, match=r"takes a menzil\.AsyncMenzil, not Menzil"):
                written()
    with pytest.raises(UsageError, match=r"takes a menzil\.Worker as worker, not str"):
        lifespan(worker="shop:tasks")  # type: ignore[arg-type]
