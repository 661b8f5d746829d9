"""pgqueuer through asyncpg and uvloop."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import QueueManager
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from bench.peers.stage import BODY, Handled, Player, main

TEXT = json.dumps(BODY).encode()
MODES = {"default": {}, "tuned": {"batch_size": 1000}}
CONNECTIONS = 4


class Pgqueuer(Player):
    """One connection to send, a pool to work."""

    async def install(self) -> None:
        await Queries.from_asyncpg_connection(await asyncpg.connect()).install()

    async def open(self) -> None:
        self.queries = Queries.from_asyncpg_connection(await asyncpg.connect())

    async def send(self) -> None:
        await self.queries.enqueue("nothing", TEXT)

    async def batch(self, size: int) -> None:
        await self.queries.enqueue(["nothing"] * size, [TEXT] * size, [0] * size)

    async def _manager(self, handled: Handled) -> QueueManager:
        pool = await asyncpg.create_pool(min_size=CONNECTIONS, max_size=CONNECTIONS)
        manager = QueueManager(Queries.from_asyncpg_pool(pool))

        @manager.entrypoint("nothing")
        async def nothing(_: object) -> None:
            handled(1)

        return manager

    async def work(self, mode: str, handled: Handled) -> None:
        manager = await self._manager(handled)
        self.running = asyncio.create_task(manager.run(**MODES[mode]))
        await asyncio.sleep(0.5)

    async def drain(self, mode: str, _count: int, handled: Handled) -> None:
        manager = await self._manager(handled)
        await manager.run(mode=QueueExecutionMode.drain, dequeue_timeout=timedelta(seconds=1), **MODES[mode])


if __name__ == "__main__":
    main(Pgqueuer(), uvloop.run)
