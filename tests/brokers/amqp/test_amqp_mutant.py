"""A seeded bug: an unroutable message that counts as delivered, because its return is read and its ack believed.

The check that is run here is the promise: what the queue calls delivered is held by the broker.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import psycopg
import pytest

import menzil
from menzil import Worker
from menzil.deliver.amqp.session import AmqpSession
from tests.brokers.amqp.peer import Line, peer
from tests.brokers.amqp.rabbit import Rabbit
from tests.brokers.amqp.readers import channel_of, held, new_queue
from tests.brokers.bodies import create, one
from tests.brokers.stage import fresh, in_loop


def plant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Returns settle nothing; the ack that follows does."""
    judge = AmqpSession._came_back

    def forget(self: AmqpSession, answer: Any, frame: Any) -> None:
        batch, self.batch = self.batch, None
        try:
            judge(self, answer, frame)
        finally:
            self.batch = batch

    monkeypatch.setattr(AmqpSession, "_came_back", forget)


def delivered(db: str, config: dict[str, Any]) -> set[str]:
    """Send messages with and without a way to a queue; return which ones the queue calls delivered."""
    with psycopg.connect(db, autocommit=True) as conn, menzil.Menzil(db) as mq:
        mq.set_setting("broker_allowed_networks", "127.0.0.0/8")
        create(conn, "rabbit", "amqp", config | {"unroutable": "dead_letter"})
        for number in range(20):
            mq.send("rabbit", number, headers={"way": "yes" if number % 3 else "no"})
        Worker(db, janitors=False).run(once=True)
        assert one(conn, "select count(*) from menzil.queue") == 0
        found = one(conn, "select jsonb_agg(payload) from menzil.archive where status = 'completed'")
        return {json.dumps(payload) for payload in found}


async def routing(line: Line, stored: set[str]) -> None:
    """A server with one queue, which takes what has a way."""
    await line.greet()
    while True:
        found = await line.message()
        assert found.properties.headers is not None
        if found.properties.headers["way"] == "yes":
            stored.add(found.body.decode())
        else:
            line.give_back(found)
        line.ack(found.tag)


@pytest.mark.parametrize("is_planted", [False, True], ids=["right", "mutant"])
@in_loop
async def test_an_unroutable_message_that_counts_as_delivered_is_noticed(
    db: str, monkeypatch: pytest.MonkeyPatch, is_planted: bool
) -> None:
    stored: set[str] = set()
    if is_planted:
        plant(monkeypatch)
    async with peer(lambda line: routing(line, stored)) as port:
        config = {"host": "127.0.0.1", "port": port, "exchange": "shop", "routing_key": ""}
        called_delivered = await asyncio.to_thread(delivered, db, config)
    assert len(stored) == 13
    assert (called_delivered <= stored) is not is_planted


@pytest.mark.slow
@pytest.mark.parametrize("is_planted", [False, True], ids=["right", "mutant"])
@in_loop
async def test_it_is_noticed_with_a_real_server(
    db: str, monkeypatch: pytest.MonkeyPatch, rabbit: Rabbit, is_planted: bool
) -> None:
    if is_planted:
        plant(monkeypatch)
    exchange = fresh("shop")
    async with channel_of(rabbit.port) as channel:
        queue = await new_queue(channel, fresh("orders"))
        shop = await channel.declare_exchange(exchange, "headers")
        await queue.bind(shop, arguments={"way": "yes"})
        config = {"host": "127.0.0.1", "port": rabbit.port, "exchange": exchange, "routing_key": ""}
        called_delivered = await asyncio.to_thread(delivered, db, config)
        stored = {found.body.decode() for found in await held(queue)}
    assert len(stored) == 13
    assert (called_delivered <= stored) is not is_planted
