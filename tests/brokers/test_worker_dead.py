"""A broker that refuses connections costs few tries, and little time of the endpoints beside it."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

import menzil
from menzil import Worker
from menzil.worker.batches import FIRST
from tests.brokers.bodies import conn, create, one, until
from tests.brokers.relay import Relay
from tests.brokers.servers import Valkey, free_port
from tests.brokers.stage import entries, fresh, in_loop

__all__ = ["conn"]  # a fixture

HELD = "select count(*) from menzil.queue where channel = 'dead' and status = 'processing'"
LIVE = "select count(*) from menzil.queue where channel = 'live'"
FAILS = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'message_fail'"


@in_loop
async def test_a_dead_endpoint_is_leased_nothing_until_its_failures_are_settled(
    db: str, conn: psycopg.Connection, valkey: Valkey
) -> None:
    stream = fresh("orders")
    create(conn, "live", "redis", {"host": "127.0.0.1", "port": valkey.port, "stream": stream})
    create(conn, "dead", "redis", {"host": "127.0.0.1", "port": free_port(), "stream": fresh("orders")})
    worker = Worker(db, janitors=False)
    with menzil.Menzil(db) as mq, psycopg.connect(db) as blocker:
        blocker.execute("lock table menzil.attempt in share mode")  # failures cannot be settled
        mq.send_batch("dead", list(range(3000)))
        serving = asyncio.create_task(worker.serve())
        await until(lambda: one(conn, FAILS) == 1, "the settle of the first failures")
        first = one(conn, HELD)
        for _ in range(5):  # there is room for many leases meanwhile
            mq.send_batch("live", list(range(200)))
            await until(lambda: one(conn, LIVE) == 0, "the others")
        assert one(conn, HELD) == first <= 500
        blocker.rollback()
        state = "select circuit_state from menzil.endpoints where name = 'dead'"
        await until(lambda: one(conn, state) == "open", "an open circuit")
        worker.stop()
        assert (await serving).delivered == 1000
    tried = one(conn, "select count(*) from menzil.attempts where channel = 'dead'")
    assert tried == first  # the rest of the backlog was not touched
    async with entries(valkey.port) as client:
        assert await client.xlen(stream) == 1000


@pytest.mark.parametrize("answers", [False, True], ids=["silent", "answering"])
@in_loop
async def test_an_endpoint_that_has_taken_nothing_yet_is_given_few_messages(
    db: str, conn: psycopg.Connection, valkey: Valkey, answers: bool
) -> None:
    stream = fresh("orders")
    async with Relay(valkey.port) as relay:
        config = {"host": "127.0.0.1", "port": relay.port, "stream": stream, "timeout_seconds": 40}
        create(conn, "dead", "redis", config | {"connect_timeout_seconds": 40})
        worker = Worker(db, janitors=False, lease=60, grace=0)
        serving = asyncio.create_task(worker.serve())
        with menzil.Menzil(db) as mq:
            if answers:
                mq.send("dead", 0)
                await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the first delivery")
            relay.hold_answers()
            for _ in range(40):
                mq.send_batch("dead", list(range(40)))
            if answers:
                await until(lambda: one(conn, HELD) > 1000, "a worker that holds all that three batches take")
            else:
                await until(lambda: one(conn, HELD) >= FIRST, "a worker that has enough")
                mq.create_endpoint("live", "redis", config | {"port": valkey.port, "stream": fresh("orders")})
                mq.send_batch("live", list(range(200)))
                await until(lambda: one(conn, LIVE) == 0, "the others")
                assert one(conn, HELD) < 2 * FIRST + 100  # the last lease may bring more than FIRST
        relay.let_answers()
        await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the rest")
        worker.stop()
        assert (await serving).dead == 0
