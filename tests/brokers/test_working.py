"""Workers that deliver to brokers: from a send to an entry of a stream, and through faults."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

import menzil
from menzil import Worker
from tests.brokers.relay import Relay
from tests.brokers.servers import NatsServer, Valkey
from tests.brokers.stage import entries, fresh, in_loop, jetstream, stored

_WAITING = "from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
SETTLES = f"select count(*) {_WAITING} and query ~ 'message_(complete|next)'"
TERMINATE = f"select pg_terminate_backend(pid, 10000) {_WAITING}"
QUICK = json.dumps({"base_delay_seconds": 0.05, "max_delay_seconds": 0.1, "max_retries": 10})


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(db, autocommit=True) as connection:
        connection.execute("select menzil.set_setting('broker_allowed_networks', '127.0.0.0/8')")
        yield connection


def create(conn: psycopg.Connection, name: str, protocol: str, config: dict[str, Any]) -> None:
    conn.execute("select menzil.create_endpoint(%s, %s, %s::jsonb)", (name, protocol, json.dumps(config)))
    conn.execute("select menzil.set_retry_policy(%s, %s::jsonb)", (name, QUICK))


def one(conn: psycopg.Connection, query: str) -> Any:
    row = conn.execute(query).fetchone()
    return row[0] if row else None


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(50):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None


def run(db: str) -> menzil.Tally:
    return Worker(db, janitors=False).run(once=True)


def test_what_is_sent_arrives_at_both_brokers_in_batches(
    db: str, conn: psycopg.Connection, valkey: Valkey, nats_server: NatsServer
) -> None:
    stream, name, subject = fresh("orders"), fresh("S"), fresh("s")
    create(conn, "valkey", "redis", {"host": "127.0.0.1", "port": valkey.port, "stream": stream})
    nats = {"servers": [f"127.0.0.1:{nats_server.port}"], "subject": subject, "capture_response": True}
    create(conn, "nats", "nats", nats)

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
        config = {"host": "127.0.0.1", "port": server.port, "stream": "s", "auth": {"password": "canary-old"}}
        create(conn, "valkey", "redis", config)
        conn.execute("select menzil.set_setting('circuit_breaker_cooldown', '5')")
        worker = Worker(db, janitors=False)
        serving = asyncio.create_task(worker.serve())
        with menzil.Menzil(db) as mq:
            mq.send("valkey", 0)
            await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the first delivery")
            async with entries(server.port, password="canary-old") as client:
                await client.config_set("requirepass", "canary-new")
                await client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            mq.send_batch("valkey", list(range(1, 1001)))
        state = "select circuit_state from menzil.endpoints"
        await until(lambda: one(conn, state) == "open", "an open circuit")
        assert one(conn, "select count(*) from menzil.dlq") == 0
        assert "WRONGPASS" in one(conn, "select last_error from menzil.queue where last_error is not null limit 1")
        config["auth"] = {"password": "canary-new"}
        conn.execute("select menzil.alter_endpoint('valkey', %s::jsonb)", (json.dumps(config),))
        conn.execute("select menzil.reset_circuit_breaker('valkey')")
        await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the rest")
        worker.stop()
        tally = await serving
        assert (tally.dead, tally.delivered) == (0, 1001)
        async with entries(server.port, password="canary-new") as client:
            assert await client.xlen("s") == 1001
    assert "canary" not in one(conn, "select coalesce(string_agg(a::text, ''), '') from menzil.attempts a")


def test_a_network_that_is_not_allowed_makes_no_dead_letters(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    stream = fresh("orders")
    create(conn, "valkey", "redis", {"host": "127.0.0.1", "port": valkey.port, "stream": stream})
    conn.execute("select menzil.set_setting('broker_allowed_networks', 'default')")
    conn.execute("select menzil.send('valkey', '1')")
    assert run(db).failed >= 1
    assert one(conn, "select count(*) from menzil.dlq") == 0
    assert "(setting broker_allowed_networks)" in one(conn, "select last_error from menzil.queue")


@pytest.mark.parametrize("kind", ["redis", "nats"])
@in_loop
async def test_a_worker_that_dies_before_it_settles_leaves_one_message(
    db: str, conn: psycopg.Connection, valkey: Valkey, nats_server: NatsServer, kind: str
) -> None:
    stream, subject = fresh("S"), fresh("s")
    async with (
        Relay(valkey.port if kind == "redis" else nats_server.port) as relay,
        jetstream(nats_server.port, stream, subject) as context,
        entries(valkey.port) as client,
    ):
        if kind == "redis":
            create(conn, "x", kind, {"host": "127.0.0.1", "port": relay.port, "stream": stream, "dedup_seconds": 60})
        else:
            create(conn, "x", kind, {"servers": [f"127.0.0.1:{relay.port}"], "subject": subject})

        async def rows() -> list[str]:
            if kind == "redis":
                return [found[b"id"].decode() for _, found in await client.xrange(stream)]
            return [found.headers["Nats-Msg-Id"] for found in await stored(context, stream)]

        conn.execute("select menzil.send('x', '1')")
        program = [sys.executable, "-m", "menzil", "worker", "--dsn", db, "--lease", "3"]
        with psycopg.connect(db) as blocker:
            relay.hold_answers()  # the worker has its lease, and waits for the login
            worker = subprocess.Popen(program, stderr=subprocess.DEVNULL, env=os.environ)
            try:
                await until(lambda: one(conn, "select count(*) from menzil.lease") == 1, "the lease")
                blocker.execute("select from menzil.lease for update")
                relay.let_answers()
                # The worker has the acknowledgement, and its settle waits for the lock.
                await until(lambda: one(conn, SETTLES) == 1, "the settle")
            finally:
                worker.send_signal(signal.SIGKILL)
                worker.wait(60)
            conn.execute(TERMINATE)  # a server would finish the statement of a client that died
        before = await rows()
        assert len(before) == 1
        again = Worker(db)
        serving = asyncio.create_task(again.serve())
        await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the second delivery")
        again.stop()
        assert (await serving).delivered == 1
        assert await rows() == before
