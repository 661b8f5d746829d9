"""What every test here needs: protocols that may reach loopback, endpoints, messages, readers of other libraries."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import nats
import redis.asyncio as redis_library
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig

from menzil.deliver.broker.protocol import Broker
from menzil.deliver.nats import Nats
from menzil.deliver.protocol import Endpoint, Surroundings
from menzil.deliver.redis import Redis
from menzil.model.message import Message
from menzil.model.outcome import Complete, Fail, Outcome

LOOPBACK = {"broker_allowed_networks": "127.0.0.0/8", "capture_response": "true"}
_numbers = itertools.count(1)


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test in an event loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(180):  # a wait that hangs ends before, and says what for
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run


@asynccontextmanager
async def speaking(kind: type[Broker], **settings: str) -> AsyncIterator[Broker]:
    """A protocol that may deliver to loopback."""
    broker = kind(Surroundings(LOOPBACK | settings, "test"))
    try:
        yield broker
    finally:
        await broker.close()


def fresh(prefix: str) -> str:
    """A name that no other test uses."""
    return f"{prefix}{next(_numbers)}"


def message(payload: Any = None, **options: Any) -> Message:
    """A message; every call makes another one."""
    return Message(next(_numbers), "billing", {"order": 42} if payload is None else payload, **options)


def redis_endpoint(port: int, stream: str, **config: Any) -> Endpoint:
    known = {"host": "127.0.0.1", "port": port, "stream": stream, **config}
    return Endpoint(next(_numbers), "billing", "redis", known, datetime.now(UTC))


def nats_endpoint(port: int, subject: str, **config: Any) -> Endpoint:
    known = {"servers": [f"127.0.0.1:{port}"], "subject": subject, **config}
    return Endpoint(next(_numbers), "billing", "nats", known, datetime.now(UTC))


@asynccontextmanager
async def entries(port: int, **options: Any) -> AsyncIterator[Any]:
    """The library redis-py, which shares no code with the deliverer."""
    async with redis_library.Redis(port=port, **options) as client:
        yield client


@asynccontextmanager
async def jetstream(port: int, stream: str, subject: str, **options: Any) -> AsyncIterator[JetStreamContext]:
    """The library nats-py, and a stream with this subject."""
    client = await nats.connect(f"nats://127.0.0.1:{port}")
    try:
        context = client.jetstream()
        await context.add_stream(name=stream, subjects=[subject], **options)
        yield context
    finally:
        await client.close()


async def stored(context: JetStreamContext, stream: str) -> list[Any]:
    """All messages of a stream, as a consumer gets them from nats-py."""
    count = (await context.stream_info(stream)).state.messages
    unbounded = ConsumerConfig(max_ack_pending=1_000_000)  # nothing is acknowledged here
    reader = await context.pull_subscribe("", stream=stream, config=unbounded)
    found: list[Any] = []
    while len(found) < count:
        found += await reader.fetch(min(500, count - len(found)), timeout=60)
    await reader.unsubscribe()
    return found


def completed(outcome: Outcome) -> dict[str, Any]:
    """The response of a delivery that succeeded."""
    assert isinstance(outcome, Complete), outcome
    return outcome.response or {}


def failed(outcome: Outcome) -> tuple[str, str]:
    """The class and the reason of one that did not."""
    assert isinstance(outcome, Fail), outcome
    kind = (outcome.response or {})["class"]
    assert (outcome.retry is False) == (kind == "message")
    return kind, outcome.reason


__all__ = ["Nats", "Redis"]
