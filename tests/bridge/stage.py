"""What tests of bridges need: bridges, runs of them, and what became of the records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from menzil.bridge.runner import Progress, Runner

PATIENCE = 60.0
#: Ends the sessions of bridges.
BACKENDS = """
select pg_terminate_backend(pid) from pg_stat_activity
 where datname = current_database() and application_name = 'menzil bridge'"""


def create(
    conn: psycopg.Connection,
    name: str,
    protocol: str,
    channel: str | None = "work",
    event: str | None = None,
    **config: Any,
) -> None:
    """Make a bridge that begins with the first record, unless the config says otherwise."""
    whole = json.dumps({"start": "earliest", **config})
    conn.execute("select menzil.bridge_create(%s, %s, %s::jsonb, %s, %s)", (name, protocol, whole, channel, event))


async def once(db: str, name: str) -> Progress:
    """Take all that the source has."""
    runner = Runner(name, db, once=True)
    async with asyncio.timeout(PATIENCE):
        await runner.run(asyncio.Event())
    return runner.progress


@asynccontextmanager
async def running(db: str, name: str) -> AsyncIterator[Runner]:
    """A bridge at work."""
    runner, stop = Runner(name, db), asyncio.Event()
    task = asyncio.create_task(runner.run(stop))
    try:
        yield runner
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE):
            await task


def waiting(conn: psycopg.Connection) -> list[Any]:
    """The payloads that wait, in the order of their sends."""
    return [row[0] for row in conn.execute("select payload from menzil.queue order by id")]


def one(conn: psycopg.Connection, query: str, *params: Any) -> Any:
    row = conn.execute(query, params or None).fetchone()
    return row[0] if row and len(row) == 1 else row


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None
