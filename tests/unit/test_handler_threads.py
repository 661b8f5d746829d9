"""Threads for plain functions, and those of asyncio.to_thread, where the machine gives the process no more of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from menzil.worker.looping import Daemons
from menzil.worker.threads import Threads


@contextmanager
def no_more_threads() -> Iterator[None]:
    """Let no thread start: there is no room for its stack."""
    before = threading.stack_size(1 << 46)
    try:
        yield
    finally:
        threading.stack_size(before)


def test_call_without_a_thread_waits_for_one_of_those_that_there_are() -> None:
    gate, begun = threading.Event(), list[str]()

    def first() -> str:
        gate.wait(60)
        return threading.current_thread().name

    async def work() -> list[str]:
        threads = Threads()
        calls = [threads.start(first)]
        with no_more_threads():
            calls += [threads.start(lambda: threading.current_thread().name) for _ in range(3)]
            given_up = threads.start(begun.append, "given up")
        given_up.cancel()
        gate.set()
        calls += [threads.start(lambda: threading.current_thread().name)]
        found = await asyncio.wait_for(asyncio.gather(*calls), 60)
        threads.close()
        return list(found)

    assert asyncio.run(work()) == ["menzil-handler"] * 5
    assert begun == [], "what was given up while it waited was never begun"


def test_call_that_could_not_be_made_is_not_made_later() -> None:
    """Its message has failed, and may be delivered by another worker by then."""
    calls: list[str] = []

    async def work() -> None:
        threads = Threads()
        with no_more_threads(), pytest.raises(RuntimeError, match="thread"):
            threads.start(calls.append, "failed")
        await asyncio.wait_for(threads.start(calls.append, "later"), 60)
        threads.close()

    asyncio.run(work())
    assert calls == ["later"]


def test_to_thread_waits_for_one_of_the_threads_that_there_are() -> None:
    gate = threading.Event()
    pool = Daemons()
    jobs = [pool.submit(gate.wait, 60)]
    with no_more_threads():
        jobs += [pool.submit(threading.current_thread) for _ in range(3)]
    gate.set()
    assert [job.result(60) for job in jobs[1:]] == pool._all[:1] * 3
    assert pool.submit(threading.current_thread).result(60) in pool._all
    pool.end(60)


def test_to_thread_that_failed_is_not_called_later_and_the_pool_ends() -> None:
    calls: list[str] = []
    pool = Daemons()
    with no_more_threads(), pytest.raises(RuntimeError, match="thread"):
        pool.submit(calls.append, "failed")
    pool.submit(calls.append, "later").result(60)
    pool.end(60)
    assert calls == ["later"]
    assert len(pool._all) == 1, "a thread that never began takes no place"
