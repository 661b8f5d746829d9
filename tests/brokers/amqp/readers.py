"""The library aio-pika, which shares no code with the deliverer: makes queues and reads what they hold."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue


@asynccontextmanager
async def channel_of(port: int, login: str = "guest:guest") -> AsyncIterator[AbstractChannel]:
    """A channel of a connection of its own."""
    connection = await aio_pika.connect(f"amqp://{login}@127.0.0.1:{port}/", timeout=30)
    async with connection:
        yield await connection.channel()


async def new_queue(channel: AbstractChannel, name: str, **arguments: Any) -> AbstractQueue:
    """A durable queue."""
    return await channel.declare_queue(name, durable=True, arguments=arguments or None)


async def held(queue: AbstractQueue) -> list[AbstractIncomingMessage]:
    """All that a queue holds now, taken out."""
    found = []
    while (one := await queue.get(fail=False, no_ack=True)) is not None:
        found.append(one)
    return found
