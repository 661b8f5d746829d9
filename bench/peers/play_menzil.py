"""menzil: its client, and its worker inside this process. Drained by `menzil worker` itself, see the roster."""

from __future__ import annotations

import asyncio

from bench import loops
from bench.peers.stage import BODY, Handled, Player, main
from bench.server import CHANNEL
from menzil import AsyncMenzil, Menzil, Worker
from menzil.model.message import Message

TUNED = {"concurrency": 500, "batch": 1000}


class Ours(Player):
    """Connected by PG… variables: an empty DSN."""

    async def install(self) -> None:
        """Every database that the server makes has it."""

    async def open(self) -> None:
        self.menzil = Menzil("")

    async def send(self) -> None:
        self.menzil.send(CHANNEL, BODY)

    async def batch(self, size: int) -> None:
        self.menzil.send_batch(CHANNEL, [BODY] * size)

    async def feed(self, size: int) -> None:
        await self.waiting.send_batch(CHANNEL, [BODY] * size)

    async def work(self, mode: str, handled: Handled) -> None:
        self.waiting = AsyncMenzil("")
        worker = Worker("", **(TUNED if mode == "tuned" else {}))  # type: ignore[arg-type]

        @worker.handler(CHANNEL)
        async def count(_: Message) -> None:
            handled(1)

        self.running = asyncio.create_task(worker.serve())
        await asyncio.sleep(0.5)  # it has no word for "started" inside a program


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loops.factory()) as runner:
        main(Ours(), runner.run)
