"""Workers and brokers that part at the worst moment: a stop with a batch under way, a new password, silence."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

import menzil
from menzil import Worker
from menzil.deliver.nats import Nats
from menzil.deliver.redis import Redis
from tests.brokers.relay import Relay
from tests.brokers.servers import NatsServer, Valkey, free_port
from tests.brokers.stage import (
    completed,
    entries,
    failed,
    fresh,
    in_loop,
    jetstream,
    message,
    nats_endpoint,
    redis_endpoint,
    speaking,
    stored,
)
from tests.brokers.test_wire_faults import ack, greet_nats, peer, published
from tests.brokers.test_working import conn, create, one, until

__all__ = ["conn"]  # a fixture

LEFT = "select count(*) from menzil.queue"


@dataclass
class Goal:
    """A broker behind a relay, the config of an endpoint there, and the ids that the broker holds."""

    relay: Relay
    protocol: str
    config: dict[str, Any]
    ids: Callable[[], Awaitable[list[str]]]


@asynccontextmanager
async def goal(kind: str, valkey: Valkey, nats_server: NatsServer) -> AsyncIterator[Goal]:
    stream, subject = fresh("S"), fresh("s")
    async with (
        Relay(valkey.port if kind == "redis" else nats_server.port) as relay,
        jetstream(nats_server.port, stream, subject) as context,
        entries(valkey.port) as client,
    ):

        async def of_valkey() -> list[str]:
            return [found[b"id"].decode() for _, found in await client.xrange(stream)]

        async def of_nats() -> list[str]:
            return [found.headers["Nats-Msg-Id"] for found in await stored(context, stream)]

        if kind == "redis":
            config = {"host": "127.0.0.1", "port": relay.port, "stream": stream, "dedup_seconds": 600}
            yield Goal(relay, kind, config, of_valkey)
        else:
            yield Goal(relay, kind, {"servers": [f"127.0.0.1:{relay.port}"], "subject": subject}, of_nats)


@pytest.mark.parametrize("answers", ["in time", "never"])
@pytest.mark.parametrize("kind", ["redis", "nats"])
@in_loop
async def test_a_worker_that_is_asked_to_stop_waits_for_acknowledgements_and_hands_back_the_rest(
    db: str,
    conn: psycopg.Connection,
    valkey: Valkey,
    nats_server: NatsServer,
    kind: str,
    answers: str,
    tmp_path: Path,
) -> None:
    count = 50
    async with goal(kind, valkey, nats_server) as to:
        create(conn, "x", to.protocol, to.config | {"timeout_seconds": 40})
        program = [sys.executable, "-m", "menzil", "worker", "--dsn", db, "--lease", "60"]
        program += ["--grace", "40" if answers == "in time" else "0.5"]
        log = tmp_path / "log"
        with log.open("w") as said, menzil.Menzil(db) as mq:
            worker = subprocess.Popen(program, stderr=said, stdout=said, env=os.environ)
            try:
                mq.send("x", 0)
                await until(lambda: one(conn, LEFT) == 0, "the first delivery")
                to.relay.hold_answers()
                mq.send_batch("x", list(range(1, count + 1)))
                async with asyncio.timeout(50):
                    while len(await to.ids()) < count + 1:  # all are written, and none is acknowledged
                        await asyncio.sleep(0.02)
                worker.send_signal(signal.SIGTERM)
                await until(lambda: "stopping" in log.read_text(), "the worker to hear it")
                if answers == "in time":
                    assert one(conn, LEFT) == count
                    to.relay.let_answers()
                assert await asyncio.to_thread(worker.wait, 50) == 0
            finally:
                if worker.poll() is None:
                    worker.kill()
                    worker.wait(60)
        to.relay.let_answers()
        if answers == "in time":
            assert one(conn, LEFT) == 0
            assert one(conn, "select max(num_attempts) from menzil.archive") == 1
        else:
            assert one(conn, LEFT) == count
            assert one(conn, "select count(*) from menzil.lease") == 0  # no other worker has to wait for them
            assert one(conn, "select coalesce(max(retry_count), 0) from menzil.queue") == 0
            again = Worker(db, janitors=False)
            serving = asyncio.create_task(again.serve())
            await until(lambda: one(conn, LEFT) == 0, "the second delivery")
            again.stop()
            assert (await serving).dead == 0
        ids = await to.ids()
        assert len(ids) == len(set(ids)) == count + 1


@in_loop
async def test_a_rotated_password_of_nats_makes_no_dead_letters(db: str, conn: psycopg.Connection) -> None:
    old = 'authorization { user: "shop", password: "canary-old" }'
    with NatsServer(lines=old) as server:

        async def found(password: str, *, make: bool = False) -> list[Any]:
            import nats

            client = await nats.connect(f"nats://shop:{password}@127.0.0.1:{server.port}")
            try:
                context = client.jetstream()
                if make:
                    await context.add_stream(name="S", subjects=["s"])
                return await stored(context, "S")
            finally:
                await client.close()

        await found("canary-old", make=True)
        auth = {"type": "password", "username": "shop", "password": "canary-old"}
        config = {"servers": [f"127.0.0.1:{server.port}"], "subject": "s", "auth": auth}
        create(conn, "nats", "nats", config)
        conn.execute("select menzil.set_setting('circuit_breaker_cooldown', '5')")
        worker = Worker(db, janitors=False)
        serving = asyncio.create_task(worker.serve())
        with menzil.Menzil(db) as mq:
            mq.send("nats", 0)
            await until(lambda: one(conn, LEFT) == 0, "the first delivery")
            server.reload(old.replace("canary-old", "canary-new"))
            mq.send_batch("nats", list(range(1, 1001)))
        await until(lambda: one(conn, "select circuit_state from menzil.endpoints") == "open", "an open circuit")
        assert one(conn, "select count(*) from menzil.dlq") == 0
        config["auth"] = auth | {"password": "canary-new"}
        conn.execute("select menzil.alter_endpoint('nats', %s::jsonb)", (json.dumps(config),))
        conn.execute("select menzil.reset_circuit_breaker('nats')")
        await until(lambda: one(conn, LEFT) == 0, "the rest")
        worker.stop()
        tally = await serving
        assert (tally.dead, tally.delivered) == (0, 1001)
        rows = Counter(int(one.data) for one in await found("canary-new"))
        assert rows == Counter(range(1001))
    assert "canary" not in one(conn, "select coalesce(string_agg(a::text, ''), '') from menzil.attempts a")


@pytest.mark.parametrize("kind", ["redis", "nats"])
@in_loop
async def test_a_broker_that_is_gone_opens_the_circuit_and_gets_all_when_it_is_back(
    db: str, conn: psycopg.Connection, valkey: Valkey, nats_server: NatsServer, kind: str
) -> None:
    async with goal(kind, valkey, nats_server) as to:
        create(conn, "x", to.protocol, to.config | {"timeout_seconds": 40})
        conn.execute("select menzil.set_setting('circuit_breaker_cooldown', '5')")
        there, to.relay.target = to.relay.target, free_port()
        worker = Worker(db, janitors=False)
        serving = asyncio.create_task(worker.serve())
        with menzil.Menzil(db) as mq:
            mq.send_batch("x", list(range(300)))
        await until(lambda: one(conn, "select circuit_state from menzil.endpoints") == "open", "an open circuit")
        assert one(conn, "select count(*) from menzil.dlq") == 0
        to.relay.target = there
        conn.execute("select menzil.reset_circuit_breaker('x')")
        await until(lambda: one(conn, LEFT) == 0, "the deliveries")
        worker.stop()
        tally = await serving
        assert (tally.dead, tally.delivered) == (0, 300)
        ids = await to.ids()
        assert len(ids) == len(set(ids)) == 300


@pytest.mark.parametrize("piece", [b"", b"$", b"$3", b"$3\r\n1-"])
@in_loop
async def test_half_an_answer_of_redis_and_silence_settle_nothing(piece: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"PING\r\n")
        writer.write(b"+PONG\r\n")
        await reader.readuntil(b"payload\r\n")
        writer.write(b"$3\r\n1-0\r\n" + piece)
        await reader.read()

    async with peer(talk) as port, speaking(Redis) as broker:
        found = await broker.deliver_many([message(1), message(2)], redis_endpoint(port, "s", timeout_seconds=0.4))
        completed(found[0])
        assert failed(found[1])[0] == "unknown"
        assert broker.kept == 0


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.95])
@in_loop
async def test_half_an_answer_of_nats_and_silence_settle_nothing(share: float) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet_nats(reader, writer)
        first, second = await published(reader), await published(reader)
        last = ack(second, 2)
        writer.write(ack(first, 1) + last[: int(len(last) * share)])
        await reader.read()

    async with peer(talk) as port, speaking(Nats) as broker:
        found = await broker.deliver_many([message(1), message(2)], nats_endpoint(port, "s", timeout_seconds=0.4))
        completed(found[0])
        assert failed(found[1])[0] == "unknown"
        assert broker.kept == 0


@in_loop
async def test_a_payload_of_no_bytes_and_texts_of_any_kind_reach_redis(valkey: Valkey) -> None:
    stream = fresh("orders")
    async with speaking(Redis) as broker, entries(valkey.port) as client:
        sent = message(content=b"", ordering_key="Müşteri\r\n7", headers={"X-City": "İzmir"})
        found = await broker.deliver_many(
            [sent, message(2, headers={"bad name": "x"}), message(3)], redis_endpoint(valkey.port, stream)
        )
        completed(found[0])
        assert failed(found[1])[0] == "message"
        completed(found[2])
        (_, first), (_, second) = await client.xrange(stream)
    assert first[b"payload"] == b""
    assert first[b"key"].decode() == "Müşteri\r\n7"
    assert first[b"h:x-city"].decode() == "İzmir"
    assert second[b"payload"] == b"3"
