"""Workers that deliver to RabbitMQ: from a send to a queue of the broker, a rotated password, and the command line."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import menzil
from menzil import Worker
from tests.brokers.amqp.rabbit import Rabbit
from tests.brokers.amqp.readers import channel_of, held, new_queue
from tests.brokers.stage import fresh, in_loop
from tests.brokers.test_working import create, one, run, until
from tests.docs.blocks import ROOT, blocks
from tests.docs.brokers import working
from tests.docs.running import Run
from tests.integration.cli.user import User

pytestmark = pytest.mark.slow


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(db, autocommit=True) as connection:
        connection.execute("select menzil.set_setting('broker_allowed_networks', '127.0.0.0/8')")
        yield connection


async def read(port: int, name: str, login: str = "guest:guest") -> list[Any]:
    """Make the queue, if it is not there, and take out what it holds."""
    async with channel_of(port, login) as channel:
        return await held(await new_queue(channel, name))


def test_what_is_sent_arrives_in_batches(db: str, conn: psycopg.Connection, rabbit: Rabbit) -> None:
    name = fresh("orders")
    asyncio.run(read(rabbit.port, name))
    config = {"host": "127.0.0.1", "port": rabbit.port, "exchange": "", "routing_key": name, "capture_response": True}
    create(conn, "rabbit", "amqp", config)
    with menzil.Menzil(db) as mq:
        mq.send_batch("rabbit", list(range(1000)))
    assert run(db).delivered == 1000
    assert sorted(int(found.body) for found in asyncio.run(read(rabbit.port, name))) == list(range(1000))
    assert one(conn, "select count(*) from menzil.queue") == 0
    answers = one(conn, "select jsonb_agg(response) from menzil.archive where channel = 'rabbit'")
    assert all(answer["delivery_tag"] >= 1 and answer["confirm_ms"] >= 0 for answer in answers)


@pytest.mark.parametrize("unroutable", ["retry", "dead_letter"])
def test_an_unroutable_message_is_not_delivered(
    db: str, conn: psycopg.Connection, rabbit: Rabbit, unroutable: str
) -> None:
    config = {"host": "127.0.0.1", "port": rabbit.port, "exchange": "", "routing_key": fresh("none")}
    create(conn, "rabbit", "amqp", config | {"unroutable": unroutable})
    conn.execute("select menzil.send('rabbit', '1')")
    tally = Worker(db, janitors=False).run(once=True)
    assert tally.delivered == 0
    assert one(conn, "select (select count(*) from menzil.queue) + (select count(*) from menzil.dlq)") == 1
    kinds = one(conn, "select jsonb_agg(response -> 'class') from menzil.attempts")
    assert set(kinds) == {"endpoint" if unroutable == "retry" else "message"}
    if unroutable == "dead_letter":
        assert (tally.dead, len(kinds)) == (1, 1)
    assert "312 NO_ROUTE" in one(conn, "select min(error) from menzil.attempts")


@in_loop
async def test_a_rotated_password_makes_no_dead_letters(db: str, conn: psycopg.Connection, rabbit: Rabbit) -> None:
    name, user = fresh("orders"), fresh("user")
    await read(rabbit.port, name)
    rabbit.control("add_user", user, "canary-old")
    rabbit.control("set_permissions", user, ".*", ".*", ".*")
    config: dict[str, Any] = {"host": "127.0.0.1", "port": rabbit.port, "exchange": "", "routing_key": name}
    config["auth"] = {"type": "plain", "username": user, "password": "canary-old"}
    create(conn, "rabbit", "amqp", config)
    conn.execute("select menzil.set_setting('circuit_breaker_cooldown', '5')")
    worker = Worker(db, janitors=False)
    serving = asyncio.create_task(worker.serve())
    with menzil.Menzil(db) as mq:
        mq.send("rabbit", 0)
        await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the first delivery")
        await asyncio.to_thread(rabbit.control, "change_password", user, "canary-new")
        await asyncio.to_thread(rabbit.control, "close_all_user_connections", user, "rotated")
        mq.send_batch("rabbit", list(range(1, 1001)))
    await until(lambda: one(conn, "select circuit_state from menzil.endpoints") == "open", "an open circuit")
    assert one(conn, "select count(*) from menzil.dlq") == 0
    said = "select last_error from menzil.queue where last_error ~ 'ACCESS_REFUSED' limit 1"
    assert "Login was refused" in one(conn, said)
    config["auth"]["password"] = "canary-new"
    conn.execute("select menzil.alter_endpoint('rabbit', %s::jsonb)", (json.dumps(config),))
    conn.execute("select menzil.reset_circuit_breaker('rabbit')")
    await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the rest")
    worker.stop()
    tally = await serving
    assert (tally.dead, tally.delivered) == (0, 1001)
    assert sorted({int(found.body) for found in await read(rabbit.port, name)}) == list(range(1001))
    assert "canary" not in one(conn, "select coalesce(string_agg(a::text, ''), '') from menzil.attempts a")


def test_an_endpoint_is_made_and_tested_on_the_command_line(db: str, rabbit: Rabbit) -> None:
    user, name = User(db), fresh("orders")
    asyncio.run(read(rabbit.port, name))
    config = {"host": "127.0.0.1", "port": rabbit.port, "exchange": "", "routing_key": name, "capture_response": True}
    made = user.types("endpoint", "create", "orders", "--protocol", "amqp", "--config", json.dumps(config))
    assert made.exit_code == 0
    assert made.stderr.splitlines() == [
        "127.0.0.1 is a loopback address: deliveries there are refused until a setting allows them.",
        "hint: menzil settings set broker_allowed_networks 127.0.0.1/32",
    ]
    assert user.types("settings", "set", "broker_allowed_networks", "127.0.0.1/32").exit_code == 0
    assert f"amqp://127.0.0.1:{rabbit.port}/%2F//{name}" in user.types("endpoint", "list").stdout
    worker = Worker(db, janitors=False)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        tested = user.types("endpoint", "test", "orders")
    finally:
        worker.stop()
        thread.join(60)
    assert tested.exit_code == 0, tested.output
    assert "confirmed in " in tested.stdout
    assert [json.loads(found.body)["type"] for found in asyncio.run(read(rabbit.port, name))] == ["menzil.test"]


def test_the_page_deliver_to_rabbitmq_does_what_it_says(
    db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rabbit: Rabbit
) -> None:
    monkeypatch.setenv("MENZIL_DSN", db)
    asyncio.run(read(rabbit.port, "orders"))
    rabbit.control("add_user", "menzil", "s3cret")
    rabbit.control("set_permissions", "menzil", "", "^amq.default$", "")  # as the page says: to write, and nothing else
    page = Run(db, tmp_path, None)
    page.stand_ins |= {
        "10.20.0.0/16": "127.0.0.0/8",
        '"host": "rabbit.internal"': f'"host": "127.0.0.1", "port": {rabbit.port}',
        '"…"': '"s3cret"',
    }
    found = blocks(ROOT / "docs/how-to/deliver-to-rabbitmq.md")
    assert sum(block.kind == "sh" and not block.reason for block in found) == 2
    with working(Worker(db, janitors=False)):
        for block in found:
            page.block(block)
    assert len(asyncio.run(read(rabbit.port, "orders"))) == 1
