"""Threads for handlers that are plain functions.

Started when they are needed and kept for the next message. They are daemons: one that hangs can be given up, and does
not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, NamedTuple

from menzil.worker.django import let_go

#: The name of each of these threads.
NAME = "menzil-handler"


class _Job(NamedTuple):
    work: Callable[[], Any]
    future: asyncio.Future[Any]


class Threads:
    """As many threads as there are calls at once."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._free = 0  # threads that wait and have no job coming; below 0, jobs that wait for a thread
        self._made = 0

    def start(self, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Call `function` in a thread. Cancelling the future gives the call up: it ends when it ends, unheard."""
        future: asyncio.Future[Any] = self._loop.create_future()
        context = copy_context()
        with self._lock:
            need = self._free <= 0
            self._free -= not need
            self._made += need
        if need:
            self._start_thread()
        self._jobs.put(_Job(lambda: context.run(function, *args), future))
        return future

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._work, name=NAME, daemon=True).start()
        except RuntimeError:  # the machine gives this process no more threads
            with self._lock:
                self._made -= 1
                if not self._made:
                    raise
                self._free -= 1  # the job waits for one of the threads that there are

    def _work(self) -> None:
        while job := self._jobs.get():
            result, error = None, None
            try:
                # A job that was given up while it waited is not begun: its message has gone back.
                result = None if job.future.cancelled() else job.work()
            except BaseException as raised:  # also SystemExit: a handler does not end the worker
                error = raised
            with self._lock:
                self._free += 1  # before it is told: who waited for this may ask for the next at once
            with suppress(RuntimeError):  # the loop is closed: nothing waits any more
                self._loop.call_soon_threadsafe(_tell, job.future, result, error)
            del job, result, error
        let_go()

    def close(self) -> None:
        """Let the threads end after what they are at."""
        for _ in range(self._made):
            self._jobs.put(None)


def _tell(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if isinstance(error, StopIteration):  # a future refuses it
        error = RuntimeError(f"StopIteration: {error}")
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
