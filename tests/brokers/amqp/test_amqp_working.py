"""Workers that deliver to RabbitMQ: from a send to a queue of the broker, a rotated password, and the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menzil import Worker
from tests.brokers.amqp.rabbit import Rabbit
from tests.brokers.amqp.readers import channel_of, held, new_queue
from tests.brokers.bodies import conn, create, deliver, make_and_test, one, rotate_password
from tests.brokers.stage import fresh, in_loop
from tests.docs.blocks import ROOT, blocks
from tests.docs.brokers import working
from tests.docs.running import Run

__all__ = ["conn"]  # a fixture
pytestmark = pytest.mark.slow


async def read(port: int, name: str, login: str = "guest:guest") -> list[Any]:
    """Make the queue, if it is not there, and take out what it holds."""
    async with channel_of(port, login) as channel:
        return await held(await new_queue(channel, name))


def to(port: int, name: str) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": port, "exchange": "", "routing_key": name}


def test_what_is_sent_arrives_in_batches(db: str, conn: psycopg.Connection, rabbit: Rabbit) -> None:
    name = fresh("orders")
    asyncio.run(read(rabbit.port, name))
    answers = deliver(db, conn, "amqp", to(rabbit.port, name))
    assert sorted(int(found.body) for found in asyncio.run(read(rabbit.port, name))) == list(range(1000))
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

    async def rotate() -> None:
        await asyncio.to_thread(rabbit.control, "change_password", user, "canary-new")
        await asyncio.to_thread(rabbit.control, "close_all_user_connections", user, "rotated")

    before, after = (
        to(rabbit.port, name) | {"auth": {"type": "plain", "username": user, "password": password}}
        for password in ("canary-old", "canary-new")
    )
    refused = "Login was refused"
    await rotate_password(db, conn, "amqp", before=before, after=after, rotate=rotate, error=refused)
    assert {int(found.body) for found in await read(rabbit.port, name)} == set(range(1001))


def test_an_endpoint_is_made_and_tested_on_the_command_line(db: str, rabbit: Rabbit) -> None:
    name = fresh("orders")
    asyncio.run(read(rabbit.port, name))
    url = f"amqp://127.0.0.1:{rabbit.port}/%2F//{name}"
    assert "confirmed in " in make_and_test(db, "amqp", to(rabbit.port, name), url)
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
