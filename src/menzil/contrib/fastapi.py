"""FastAPI and Starlette: a client that lives as long as the application, a worker inside it, and the console's end.

Nothing of either is imported: a lifespan is an async context manager, and a dependency is a function.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from menzil.client import AsyncMenzil
from menzil.model.errors import UsageError
from menzil.worker import Tally, Worker

if TYPE_CHECKING:
    from menzil.console import Console

LOGGER = logging.getLogger("menzil.fastapi")

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def lifespan(
    mq: AsyncMenzil | None = None,
    *,
    worker: Worker | None = None,
    console: Console | None = None,
    inner: Lifespan | None = None,
) -> Lifespan:
    """Return the lifespan of an application: FastAPI(lifespan=lifespan(mq, worker=app)).

    The application does not start when the database of `mq` cannot be reached or does not fit, or when the worker
    cannot start. At the end the worker finishes what is under way, for as long as its grace period; then connections
    are closed.

    mq       the client that requests use
    worker   runs inside the application, in its event loop: plain functions run in threads
    console  closes its connections at the end; lifespans of mounted applications do not run
    inner    a lifespan of your own, which begins after these and ends before them; its state is the application's
    """
    if mq is not None:
        _must_be_async("lifespan", mq)
    if worker is not None and not isinstance(worker, Worker):
        raise UsageError(f"lifespan takes a menzil.Worker as worker, not {type(worker).__name__}.")

    @asynccontextmanager
    async def live(app: Any) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            if mq is not None:
                await stack.enter_async_context(_opened(mq))
            if console is not None:
                await stack.enter_async_context(console.lifespan(app))
            if worker is not None:
                await stack.enter_async_context(working(worker))
            yield await stack.enter_async_context(inner(app)) if inner is not None else None

    return live


def queue(mq: AsyncMenzil) -> Callable[[], Awaitable[AsyncMenzil]]:
    """Return a dependency: Queue = Annotated[AsyncMenzil, Depends(queue(mq))]."""
    _must_be_async("queue", mq)

    async def found() -> AsyncMenzil:
        return mq

    return found


def _must_be_async(name: str, mq: object) -> None:
    if not isinstance(mq, AsyncMenzil):
        hint = "a menzil.Menzil would stop the event loop while it waits for the database"
        raise UsageError(f"{name} takes a menzil.AsyncMenzil, not {type(mq).__name__}.", hint=hint)


@asynccontextmanager
async def _opened(mq: AsyncMenzil) -> AsyncIterator[None]:
    if mq._closed:
        # A test starts one application several times, each time in another event loop.
        mq._pool, mq._closed = None, False
    pool = await mq._own_pool()
    async with pool.connection():
        pass  # refuses a database that is not there, or whose schema does not fit
    try:
        yield
    finally:
        await mq.close()


@asynccontextmanager
async def working(worker: Worker) -> AsyncIterator[None]:
    """Run a worker beside what is inside the block. It stops when the block ends; a failure to start is raised."""
    task = asyncio.create_task(worker.serve(), name="menzil-worker")
    try:
        while not task.done() and not worker.started:
            await asyncio.wait([task], timeout=0.01)
        if task.done():
            task.result()
        task.add_done_callback(_tell)
        yield
    finally:
        worker.stop()
        # Its failure was raised above or told in the log; a shutdown goes on.
        await asyncio.wait([task])


def _tell(task: asyncio.Task[Tally]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        LOGGER.error("The worker inside this application has ended; no message is handled any more.", exc_info=error)
