"""One request and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from menzil.deliver.wire.answer import Answer
from menzil.deliver.wire.connect import open_connection
from menzil.deliver.wire.errors import StaleError, late
from menzil.deliver.wire.pool import Pool
from menzil.deliver.wire.route import Address, Route


class Client:
    """Sends requests over connections that it keeps. Belongs to the event loop that was running when it was made."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.pool = Pool(self.loop)

    async def exchange(
        self,
        route: Route,
        addresses: Sequence[Address],
        head: bytes,
        body: bytes,
        *,
        started: float,
        seconds: float,
        connect_seconds: float,
    ) -> Answer:
        """Return the answer, or raise a WireError; either way no later than `seconds` after `started` (loop time)."""
        deadline = started + seconds
        connection = self.pool.take(route, addresses)
        while True:
            if connection is None:
                now = self.loop.time()
                if now >= deadline:
                    raise late(seconds, "connecting")
                until = min(deadline, now + connect_seconds)
                connection = await open_connection(self.pool, route, addresses, until, connect_seconds)
            try:
                return await connection.send(head, body, deadline, seconds)
            except StaleError:
                # The receiver closed the idle connection and answered nothing. The request is sent once more, on a new
                # connection, which is never stale.
                connection = None
            except asyncio.CancelledError:
                connection.abort()
                raise

    def close(self) -> None:
        """Drop all connections; requests that wait for an answer are cancelled."""
        self.pool.close()
