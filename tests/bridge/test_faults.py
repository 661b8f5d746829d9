"""Bridges whose database goes away, and messages that go out and come back in."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

import menzil
from menzil import Worker
from menzil.embedded import Embedded
from menzil.install import migrate
from tests.bridge.stage import BACKENDS, create, once, one, running, until, waiting
from tests.brokers.servers import NatsServer, Valkey
from tests.brokers.stage import entries, fresh, in_loop, jetstream
from tests.memory import MEMORY


@in_loop
async def test_connections_to_the_database_that_break_lose_and_double_nothing(
    db: str, conn: psycopg.Connection, valkey: Valkey
) -> None:
    stream, chance = fresh("in"), random.Random(3)
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream, batch=5)
    async with entries(valkey.port) as client, running(db, "b") as runner:
        for n in range(1000):
            await client.xadd(stream, {"payload": str(n)})
        for _ in range(10):
            before = one(conn, "select coalesce(max(taken), 0) from menzil.bridge_positions")
            await asyncio.sleep(chance.uniform(0, 0.02))  # anywhere in the middle of a batch
            conn.execute(BACKENDS)
            await until(
                lambda: (
                    one(conn, "select coalesce(max(taken), 0) from menzil.bridge_positions") > before  # noqa: B023
                    or one(conn, "select taken from menzil.bridges") == 1000
                ),
                "a bridge that goes on",
            )
        await until(lambda: one(conn, "select taken from menzil.bridges") == 1000, "all entries")
        await until(lambda: runner.progress.error is None, "a bridge without trouble")
    assert waiting(conn) == list(range(1000))


@pytest.mark.slow
def test_a_server_that_crashes_and_starts_again_loses_and_doubles_nothing(valkey: Valkey) -> None:
    place = tempfile.TemporaryDirectory(prefix="mz-bridge-", dir=MEMORY, ignore_cleanup_errors=True)
    Path(place.name).chmod(0o711)  # for root the server runs as another account, which has to pass through
    server = Embedded(Path(place.name) / "pg")
    server.start()
    try:
        migrate(server.dsn)
        stream = fresh("in")
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute("select menzil.set_setting('broker_allowed_networks', '127.0.0.0/8')")
            conn.execute("select menzil.channel_set('work')")
            create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream, batch=20)
        asyncio.run(_through_a_crash(server, valkey, stream))
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            assert waiting(conn) == list(range(3000))
    finally:
        server.close(wait=30)
        place.cleanup()


async def _through_a_crash(server: Embedded, valkey: Valkey, stream: str) -> None:
    async with entries(valkey.port) as client, running(server.dsn, "b") as runner:
        for n in range(3000):
            await client.xadd(stream, {"payload": str(n)})
        await until(lambda: runner.progress.taken > 100, "some entries")
        os.kill(server.pid, signal.SIGQUIT)  # PostgreSQL's own crash: no checkpoint, no goodbye
        await until(lambda: runner.progress.error is not None, "a notice")
        await asyncio.to_thread(server.start)
        await until(lambda: runner.progress.taken > 0 and runner.progress.error is None, "a bridge without trouble")

        def taken() -> int:
            with psycopg.connect(server.dsn, autocommit=True) as conn:
                found: int = one(conn, "select taken from menzil.bridges")
            return found

        await until(lambda: taken() == 3000, "all entries")


@in_loop
async def test_a_message_that_goes_out_and_comes_back_in_is_the_same(
    db: str, conn: psycopg.Connection, valkey: Valkey, nats_server: NatsServer
) -> None:
    stream, subject = fresh("loop"), fresh("LOOP")
    async with jetstream(nats_server.port, subject, subject):
        with menzil.Menzil(db) as mq:
            mq.create_endpoint("r", "redis", {"host": "127.0.0.1", "port": valkey.port, "stream": stream})
            mq.create_endpoint("n", "nats", {"servers": [f"127.0.0.1:{nats_server.port}"], "subject": subject})
            trace = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "a=b"}
            uuid = "6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11"
            for name in ("r", "n"):
                more: Any = {"ordering_key": "schlüssel", "correlation_id": uuid, "headers": {"x-tenant": "ş"}}
                mq.send(name, {"n": "ğ", "big": 12345678901234567890}, metadata=trace, **more)
                mq.send(name, b"\x00\xff")
        await asyncio.to_thread(lambda: Worker(db, janitors=False).run(once=True))
        create(conn, "from r", "redis", host="127.0.0.1", port=valkey.port, stream=stream)
        create(conn, "from n", "nats", servers=[f"127.0.0.1:{nats_server.port}"], stream=subject)
        for name in ("from r", "from n"):
            assert (await once(db, name)).taken == 2
    rows = conn.execute(
        """select payload::text, content, ordering_key, correlation_id::text, headers, metadata
             from menzil.queue where channel = 'work' order by id"""
    ).fetchall()
    found = Counter((row[0], row[1], row[2], row[3]) for row in rows)
    sent = ('{"n": "ğ", "big": 12345678901234567890}', None, "schlüssel", uuid)
    assert found == {sent: 2, (None, b"\x00\xff", None, None): 2}
    for row in rows:
        if row[0]:
            assert row[4] == {"x-tenant": "ş"}
            assert {name: row[5][name] for name in trace} == trace
        assert row[5]["bridge"]["id"].startswith("msg_")
        assert row[5]["bridge"]["type"] in ("r", "n")
