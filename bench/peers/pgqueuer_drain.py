"""pgqueuer: `python pgqueuer_drain.py fill|drain COUNT` in an environment that has it, connected by the environment."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import QueueManager
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

BODY = json.dumps({"order": 1, "customer": "customer-1", "status": "paid", "note": "x" * 30}).encode()
BATCH = 1000
CONNECTIONS = 4


async def fill(count: int) -> None:
    """Install it and enqueue so many."""
    conn = await asyncpg.connect()
    queries = Queries.from_asyncpg_connection(conn)
    await queries.install()
    for first in range(0, count, 1000):
        part = min(1000, count - first)
        await queries.enqueue(["nothing"] * part, [BODY] * part, [0] * part)
    await conn.close()


async def drain() -> None:
    """Work until the queue is empty."""
    pool = await asyncpg.create_pool(min_size=CONNECTIONS, max_size=CONNECTIONS)
    manager = QueueManager(Queries.from_asyncpg_pool(pool))
    began: list[float] = []
    handled = 0

    @manager.entrypoint("nothing")
    async def nothing(_: object) -> None:
        nonlocal handled
        if not began:
            began.extend((time.monotonic(), time.process_time()))
        handled += 1

    await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain, dequeue_timeout=timedelta(seconds=1))
    told = {"seconds": time.monotonic() - began[0], "cpu": time.process_time() - began[1], "handled": handled}
    print(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(fill(int(sys.argv[2]))) if sys.argv[1] == "fill" else uvloop.run(drain())
