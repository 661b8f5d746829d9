"""procrastinate: `python procrastinate_drain.py fill|drain COUNT` in an environment that has it."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import procrastinate
import uvloop

NOTE = {"order": 1, "customer": "customer-1", "status": "paid", "note": "x" * 30}
AT_ONCE = 30

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo="", min_size=10, max_size=10))
began: list[float] = []
handled = 0


@app.task(name="nothing")
async def nothing(**_: object) -> None:
    """Count it."""
    global handled
    if not began:
        began.extend((time.monotonic(), time.process_time()))
    handled += 1


async def fill(count: int) -> None:
    """Install it and defer so many."""
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for first in range(0, count, 1000):
            await nothing.batch_defer_async(*[NOTE] * min(1000, count - first))


async def drain() -> None:
    """Work until the queue is empty."""
    async with app.open_async():
        await app.run_worker_async(concurrency=AT_ONCE, wait=False, install_signal_handlers=False)
    told = {"seconds": time.monotonic() - began[0], "cpu": time.process_time() - began[1], "handled": handled}
    print(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(fill(int(sys.argv[2]))) if sys.argv[1] == "fill" else uvloop.run(drain())
