"""Clients and workers that a program keeps in its modules, pointed at the database of one test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from menzil.client import AsyncMenzil, Menzil
from menzil.model.errors import UsageError
from menzil.ops.dsn import Dsn
from menzil.worker import Worker


@contextmanager
def pointed(dsn: str, *things: Menzil | AsyncMenzil | Worker) -> Iterator[None]:
    """Let these use the database `dsn`, and afterwards what they used before."""
    with ExitStack() as stack:
        for thing in things:
            stack.enter_context(_pointed(Dsn(dsn, "the database of the test"), thing))
        yield


@contextmanager
def _pointed(dsn: Dsn, thing: Any) -> Iterator[None]:
    if not isinstance(thing, Menzil | AsyncMenzil | Worker):
        kind = type(thing).__qualname__
        raise UsageError(
            f"A {kind} cannot be pointed at a database.", hint="give Menzil, AsyncMenzil or Worker objects"
        )
    if isinstance(thing, Worker):
        served, thing._dsn = thing._dsn, dsn
        try:
            yield
        finally:
            thing._dsn = served
        return
    before = thing._dsn
    thing._dsn = dsn
    pool, closed = thing._pool, thing._closed
    thing._pool, thing._closed = None, False
    try:
        yield
    finally:
        if isinstance(thing, Menzil):
            if thing._pool is not None:
                thing._pool.close()
        else:
            let_go(thing)
        thing._dsn, thing._pool, thing._closed = before, pool, closed


def let_go(client: AsyncMenzil) -> None:
    """Close the connections of an async client, also when its event loop is gone by now."""
    pool, client._pool = client._pool, None
    if pool is None or pool._pool is None:
        return
    loop = pool._loop
    if loop is not None and not loop.is_closed() and not loop.is_running():
        with suppress(RuntimeError):  # this thread is inside another loop
            loop.run_until_complete(pool.close())
            return
    # The loop cancelled the pool's tasks when it ended. What is left are sockets, and a warning about each.
    for conn in list(pool._pool._pool):
        conn.pgconn.finish()
