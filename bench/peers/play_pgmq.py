"""pgmq: its own SQL and its own Python client, on a pool that commits each statement."""

from __future__ import annotations

import asyncio
import os

from pgmq import PGMQueue
from pgmq.install import get_embedded_install_sql
from psycopg import connect
from psycopg_pool import ConnectionPool

from bench.peers.stage import BODY, Handled, Player, main

QUEUE = "nothing"
SIZE = 100  # messages of one read when tuned
LEASE = 30


class Pgmq(Player):
    """It has no worker: a loop of read and delete, as its documentation shows."""

    def _client(self) -> PGMQueue:
        pool = ConnectionPool("", min_size=1, max_size=2, kwargs={"autocommit": True}, open=True)
        return PGMQueue(pool=pool, init_extension=False)

    async def install(self) -> None:
        with connect("", autocommit=True) as conn:
            conn.execute(get_embedded_install_sql())
        self._client().create_queue(QUEUE)
        os._exit(0)

    async def open(self) -> None:
        self.client = self._client()

    async def send(self) -> None:
        self.client.send(QUEUE, BODY)

    async def batch(self, size: int) -> None:
        self.client.send_batch(QUEUE, [BODY] * size)

    async def work(self, _mode: str, handled: Handled) -> None:
        def loop() -> None:
            client = self._client()
            while True:
                found = client.read_with_poll(QUEUE, LEASE, SIZE, 5, 100) or []
                if found:
                    handled(len(found))
                    client.delete_batch(QUEUE, [one.msg_id for one in found])

        self.running = asyncio.get_running_loop().run_in_executor(None, loop)

    async def drain(self, mode: str, _count: int, handled: Handled) -> None:
        client = self._client()
        if mode == "default":
            while one := client.read(QUEUE, LEASE):
                handled(1)
                client.delete(QUEUE, one.msg_id)
        else:
            while found := client.read_batch(QUEUE, LEASE, SIZE):
                handled(len(found))
                client.delete_batch(QUEUE, [one.msg_id for one in found])


if __name__ == "__main__":
    main(Pgmq())
    os._exit(0)
