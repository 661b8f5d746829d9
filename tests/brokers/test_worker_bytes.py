"""Brokers that hang with large messages leave some of the worker's byte budget to others."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import psycopg
import pytest

import menzil
from menzil import Worker
from tests.brokers.bodies import conn, create, one, until
from tests.brokers.relay import Relay
from tests.brokers.servers import Valkey
from tests.brokers.stage import entries, fresh, in_loop

__all__ = ["conn"]  # a fixture

BUDGET = 2 * 1024 * 1024
LARGE = "x" * 20_000
#: Seconds after which a hanging broker is given up, and within which the others must be served.
HANGS, SOON = 120, 50


@pytest.mark.parametrize("hanging", [1, 3])
@pytest.mark.parametrize("before", [0, 300], ids=["large at once", "large after small"])
@in_loop
async def test_an_endpoint_that_hangs_with_large_messages_leaves_bytes_to_others(
    db: str, conn: psycopg.Connection, valkey: Valkey, hanging: int, before: int
) -> None:
    names = [f"hangs{number}" for number in range(hanging)]
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(entries(valkey.port))
        relays = {name: await stack.enter_async_context(Relay(valkey.port)) for name in names}
        live = fresh("orders")
        config = {"host": "127.0.0.1", "timeout_seconds": HANGS, "connect_timeout_seconds": HANGS}
        create(conn, "live", "redis", config | {"port": valkey.port, "stream": live})
        for name, relay in relays.items():
            create(conn, name, "redis", config | {"port": relay.port, "stream": fresh("orders")})
        worker = Worker(db, janitors=False, max_bytes=BUDGET, lease=60, grace=0)
        serving = asyncio.create_task(worker.serve())
        with menzil.Menzil(db) as mq:
            for name in names:  # connected, and the worker expects messages of this size
                mq.send_batch(name, ["y"] * max(1, before))
            await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the first deliveries")
            for name, relay in relays.items():
                relay.hold_answers()
                mq.send_batch(name, [LARGE] * 300)
            held, many = "select count(*) from menzil.queue where status = 'processing'", BUDGET * 0.4 / len(LARGE)
            await until(lambda: one(conn, held) > many, "the worker to hold large messages")
            await asyncio.sleep(1)  # it leases as much as it wants
            mq.send_batch("live", [LARGE] * 100)
            async with asyncio.timeout(SOON):
                while await client.xlen(live) < 100:
                    await asyncio.sleep(0.02)
        assert one(conn, held) > many  # and they hang still
        assert one(conn, "select max(num_attempts) from menzil.queue") <= 2  # nothing goes to and fro meanwhile
        for relay in relays.values():
            relay.let_answers()
        await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the rest")
        worker.stop()
        assert (await serving).dead == 0
