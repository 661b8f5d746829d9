"""A RabbitMQ that dies, stops, freezes or falls silent: queues hold what was confirmed, in order, and under one id."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from menzil.deliver.amqp import Amqp
from tests.brokers.amqp.peer import amqp_endpoint
from tests.brokers.amqp.rabbit import Rabbit, needs_rabbit
from tests.brokers.amqp.readers import channel_of, held, new_queue
from tests.brokers.relay import Relay
from tests.brokers.stage import fresh, speaking
from tests.brokers.test_faults import DEADLINE, FAULTS, Story, check, freeze, kill, live_through, mute, swallow

Fault = Callable[..., Awaitable[object]]


def run(story: Awaitable[None]) -> None:
    """Longer than other tests may take: RabbitMQ starts in 10 seconds, on a busy machine in 30."""

    async def bounded() -> None:
        async with asyncio.timeout(300):
            await story

    asyncio.run(bounded())


async def live(server: Rabbit, fault: Fault, **arguments: Any) -> None:
    name = fresh("orders")
    async with Relay(server.port) as relay, speaking(Amqp) as broker:
        async with channel_of(server.port) as channel:
            await new_queue(channel, name, **arguments)
        story = Story(broker, amqp_endpoint(relay.port, name, timeout_seconds=2 * DEADLINE))
        await live_through(story, server, relay, fault)
        async with channel_of(server.port) as channel:
            found = await held(await new_queue(channel, name, **arguments))
        rows = [(str(one.headers["menzil-key"]), str(one.message_id)) for one in found]
        check(story, rows, once=False)
        if fault is mute:
            assert len(rows) > len(set(rows))  # the fault does what it says


@pytest.mark.slow
@pytest.mark.parametrize("fault", [freeze, swallow, mute, kill])
def test_a_queue_holds_what_was_confirmed(rabbit: Rabbit, fault: Fault) -> None:
    run(live(rabbit, fault))


@pytest.mark.torture
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("fault", FAULTS)
def test_queues_of_both_kinds_hold_what_was_confirmed_round_after_round(kind: str, fault: Fault) -> None:
    needs_rabbit()
    with Rabbit() as server:
        for _ in range(3):
            run(live(server, fault, **{"x-queue-type": kind}))
