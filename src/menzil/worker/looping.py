"""The event loop of a worker that is a program of its own: what handlers leave in it neither ends nor keeps it.

A task that a handler has started may raise SystemExit or KeyboardInterrupt, which asyncio raises out of the loop: the
loop goes on, and the handler that awaits the task gets the exception. A task that does not let itself be cancelled, or
a thread of asyncio.to_thread that hangs, is left behind when its message has been handed back.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from menzil.worker.log import Hide, Log

T = TypeVar("T")

#: Seconds that tasks have after they were cancelled, and threads at least.
LEFT = 2.0


class _Job(NamedTuple):
    future: Future[Any]
    call: Callable[[], Any]


class Daemons(ThreadPoolExecutor):
    """The threads of asyncio.to_thread, as many as asyncio has. Python does not wait for these at its end."""

    def __init__(self) -> None:
        """Start none yet."""
        super().__init__()
        self._all: list[threading.Thread] = []
        self._waiting: SimpleQueue[_Job | None] = SimpleQueue()
        self._guard = threading.Lock()
        self._free = 0  # threads that wait and have no job coming; below 0, jobs that wait for a thread
        self._over = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call it in a thread."""
        future: Future[Any] = Future()
        with self._guard:
            if self._over:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._free > 0 or len(self._all) >= self._max_workers or not self._start_thread():
                self._free -= 1
            self._waiting.put(_Job(future, lambda: fn(*args, **kwargs)))
        return future

    def _start_thread(self) -> bool:
        thread = threading.Thread(target=self._work, name=f"asyncio_{len(self._all)}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the machine gives this process no more threads
            if not self._all:
                raise
            return False  # the job waits for one of the threads that there are
        self._all.append(thread)
        return True

    def _work(self) -> None:
        while job := self._waiting.get():
            if job.future.set_running_or_notify_cancel():
                try:
                    result = job.call()
                except BaseException as error:
                    job.future.set_exception(error)
                else:
                    job.future.set_result(result)
                    del result
            del job
            with self._guard:
                self._free += 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more jobs; `wait` until all are done."""
        with self._guard:
            self._over = True
            with suppress(Empty):
                while cancel_futures and (job := self._waiting.get_nowait()):
                    job.future.cancel()
            for _ in self._all:
                self._waiting.put(None)
        if wait:
            self.end(None)

    def end(self, seconds: float | None) -> None:
        """Take no more jobs, and wait so long for those that there are; None: until they are done."""
        self.shutdown(wait=False)
        ends = None if seconds is None else monotonic() + seconds
        for thread in self._all:
            thread.join(None if ends is None else max(0.0, ends - monotonic()))


def run(
    work: Coroutine[Any, Any, T],
    factory: Callable[[], asyncio.AbstractEventLoop] | None,
    patience: Callable[[], float | None],
) -> T:
    """Do the work in a loop of its own. `patience`: seconds for threads at the end; None is as long as needed."""
    loop, pool, log = (factory or asyncio.new_event_loop)(), Daemons(), Log(Hide())
    asyncio.set_event_loop(loop)
    loop.set_default_executor(pool)
    try:
        return _go_on(loop, loop.create_task(work), log)
    finally:
        try:
            _clear(loop, log)
            seconds = patience()
            pool.end(None if seconds is None else max(LEFT, seconds))
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _go_on(loop: asyncio.AbstractEventLoop, task: asyncio.Task[T], log: Log) -> T:
    while True:
        try:
            return loop.run_until_complete(task)
        except (SystemExit, KeyboardInterrupt) as error:
            if task.done():
                raise
            hint = "a task of a handler raised it; return from the handler, or raise another exception"
            log.error("exit_refused", error=f"{type(error).__name__}: {error}", hint=hint)


def _clear(loop: asyncio.AbstractEventLoop, log: Log) -> None:
    """Cancel what handlers have left, and give it some time."""
    if left := asyncio.all_tasks(loop):
        for task in left:
            task.cancel()
        _go_on(loop, loop.create_task(asyncio.wait(left, timeout=LEFT)), log)
        for task in left:
            if not task.done():
                setattr(task, "_log_destroy_pending", False)  # noqa: B010  # the worker has said so, and better
    closing = loop.create_task(loop.shutdown_asyncgens())
    _go_on(loop, loop.create_task(asyncio.wait([closing], timeout=LEFT)), log)
