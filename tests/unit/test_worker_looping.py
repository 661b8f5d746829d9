"""The event loop of a worker that is a program, and its threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future

import pytest

import menzil
from menzil.worker.looping import Daemons, run


def test_threads_are_as_many_as_asyncio_has_and_are_used_again() -> None:
    pool, most, gate = Daemons(), Daemons()._max_workers, threading.Event()
    names: set[str] = set()

    def work(number: int) -> int:
        gate.wait(60)
        names.add(threading.current_thread().name)
        return number

    found = [pool.submit(work, number) for number in range(3 * most)]
    gate.set()
    assert [one.result(60) for one in found] == list(range(3 * most))
    assert len(names) <= most
    with pytest.raises(SystemExit):
        pool.submit(exit, 3).result(60)
    pool.end(None)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(work, 1)


def test_jobs_that_are_cancelled_are_not_begun() -> None:
    pool, gate = Daemons(), threading.Event()
    begun = threading.Barrier(pool._max_workers + 1)

    def run() -> bool:
        begun.wait(60)
        return gate.wait(60)

    running = [pool.submit(run) for _ in range(pool._max_workers)]
    begun.wait(60)
    waiting: Future[bool] = pool.submit(gate.wait, 60)
    pool.shutdown(wait=False, cancel_futures=True)
    assert waiting.cancelled()
    gate.set()
    pool.end(None)
    assert all(one.result(0) for one in running)


def test_end_does_not_wait_longer_than_it_may() -> None:
    pool, gate = Daemons(), threading.Event()
    job = pool.submit(gate.wait)
    pool.end(0.01)
    assert not job.done()
    gate.set()


def test_what_was_left_is_cancelled_and_generators_are_closed() -> None:
    said: list[str] = []
    kept: list[AsyncIterator[int]] = []

    async def generator() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            said.append("closed")

    async def wait() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            said.append("cancelled")

    async def story() -> str:
        asyncio.get_running_loop().create_task(wait(), name="left")
        kept.append(generator())
        await anext(kept[0])
        said.append("began")
        return "done"

    assert run(story(), None, lambda: None) == "done"
    assert said == ["began", "cancelled", "closed"]


def test_a_worker_is_not_run_inside_an_event_loop() -> None:
    async def story() -> None:
        with pytest.raises(menzil.UsageError, match="inside an event loop") as found:
            menzil.Worker("postgresql://localhost/shop").run()
        assert "await app.serve()" in str(found.value.hint)

    asyncio.run(story())
