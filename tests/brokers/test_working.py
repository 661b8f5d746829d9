"""Workers that deliver to Valkey and NATS: from a send to an entry of a stream, and a rotated password."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from typing import Any

import nats
import psycopg

import menzil
from tests.brokers.bodies import conn, create, one, rotate_password, run
from tests.brokers.servers import NatsServer, Valkey
from tests.brokers.stage import entries, fresh, in_loop, jetstream, stored

__all__ = ["conn"]  # a fixture


def test_what_is_sent_arrives_at_both_brokers_in_batches(
    db: str, conn: psycopg.Connection, valkey: Valkey, nats_server: NatsServer
) -> None:
    stream, name, subject = fresh("orders"), fresh("S"), fresh("s")
    create(conn, "valkey", "redis", {"host": "127.0.0.1", "port": valkey.port, "stream": stream})
    config = {"servers": [f"127.0.0.1:{nats_server.port}"], "subject": subject, "capture_response": True}
    create(conn, "nats", "nats", config)

    async def read() -> tuple[list[Any], list[Any]]:
        async with entries(valkey.port) as client, jetstream(nats_server.port, name, subject) as context:
            return [f[b"payload"] for _, f in await client.xrange(stream)], await stored(context, name)

    asyncio.run(read())  # makes the stream of NATS
    with menzil.Menzil(db) as mq:
        for channel in ("valkey", "nats"):
            mq.send_batch(channel, list(range(1000)))
    assert run(db).delivered == 2000
    found, published = asyncio.run(read())
    assert sorted(map(int, found)) == sorted(int(message.data) for message in published) == list(range(1000))
    assert one(conn, "select count(*) from menzil.queue") == 0
    answers = one(conn, "select jsonb_agg(response) from menzil.archive where channel = 'nats'")
    assert sorted(answer["sequence"] for answer in answers) == list(range(1, 1001))
    assert {answer["stream"] for answer in answers} == {name}


def test_a_worker_imports_protocols_of_endpoints_before_it_leases(db: str, conn: psycopg.Connection) -> None:
    create(conn, "valkey", "redis", {"host": "127.0.0.1", "port": 9, "stream": "s"})
    program = f"""
import sys
from menzil import Worker
Worker({db!r}, janitors=False).run(once=True)
print(*("menzil.deliver." + name in sys.modules for name in ("redis", "nats")))"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout == "True False\n"


@in_loop
async def test_a_rotated_password_makes_no_dead_letters(db: str, conn: psycopg.Connection) -> None:
    with Valkey(requirepass="canary-old") as server:
        config = {"host": "127.0.0.1", "port": server.port, "stream": "s"}

        async def rotate() -> None:
            async with entries(server.port, password="canary-old") as client:
                await client.config_set("requirepass", "canary-new")
                await client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

        before, after = (config | {"auth": {"password": password}} for password in ("canary-old", "canary-new"))
        await rotate_password(db, conn, "redis", before=before, after=after, rotate=rotate, error="WRONGPASS")
        async with entries(server.port, password="canary-new") as client:
            assert await client.xlen("s") == 1001


@in_loop
async def test_a_rotated_password_of_nats_makes_no_dead_letters(db: str, conn: psycopg.Connection) -> None:
    old = 'authorization { user: "shop", password: "canary-old" }'
    with NatsServer(lines=old) as server:

        async def found(password: str, *, make: bool = False) -> list[Any]:
            client = await nats.connect(f"nats://shop:{password}@127.0.0.1:{server.port}")
            try:
                context = client.jetstream()
                if make:
                    await context.add_stream(name="S", subjects=["s"])
                return await stored(context, "S")
            finally:
                await client.close()

        async def rotate() -> None:
            server.reload(old.replace("canary-old", "canary-new"))

        await found("canary-old", make=True)
        config = {"servers": [f"127.0.0.1:{server.port}"], "subject": "s"}
        before, after = (
            config | {"auth": {"type": "password", "username": "shop", "password": password}}
            for password in ("canary-old", "canary-new")
        )
        await rotate_password(db, conn, "nats", before=before, after=after, rotate=rotate)
        assert Counter(int(one.data) for one in await found("canary-new")) == Counter(range(1001))


def test_a_network_that_is_not_allowed_makes_no_dead_letters(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    stream = fresh("orders")
    create(conn, "valkey", "redis", {"host": "127.0.0.1", "port": valkey.port, "stream": stream})
    conn.execute("select menzil.set_setting('broker_allowed_networks', 'default')")
    conn.execute("select menzil.send('valkey', '1')")
    assert run(db).failed >= 1
    assert one(conn, "select count(*) from menzil.dlq") == 0
    assert "(setting broker_allowed_networks)" in one(conn, "select last_error from menzil.queue")
