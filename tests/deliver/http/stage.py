"""What every test here needs: a loop, an endpoint, a message, and the protocol between them."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from menzil.deliver.http import Http
from menzil.deliver.protocol import Endpoint, Surroundings
from menzil.model.message import Message
from menzil.model.outcome import Complete, Fail, Outcome

_numbers = itertools.count(1)
LOOPBACK = {"http_allow_internal_urls": "true"}


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test in an event loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(30):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run


@asynccontextmanager
async def protocol(**settings: str) -> AsyncIterator[Http]:
    """An Http that may deliver to loopback."""
    http = Http(Surroundings(LOOPBACK | settings, "test"))
    try:
        yield http
    finally:
        await http.close()


def endpoint(url: str, **config: Any) -> Endpoint:
    """An endpoint; every call makes another one."""
    return Endpoint(next(_numbers), "billing", "http", {"url": url, **config}, datetime.now(UTC))


def message(payload: Any = None, **options: Any) -> Message:
    """A message; every call makes another one."""
    return Message(next(_numbers), "billing", {"order": 42} if payload is None else payload, **options)


async def deliver(url: str, sent: Message | None = None, /, **config: Any) -> Outcome:
    """Deliver one message with a protocol of its own."""
    async with protocol() as http:
        return await http.deliver(sent or message(), endpoint(url, **config))


def failed(outcome: Outcome) -> Fail:
    """The outcome, which is a failure."""
    assert isinstance(outcome, Fail), outcome
    return outcome


def completed(outcome: Outcome) -> Complete:
    """The outcome, which is none."""
    assert isinstance(outcome, Complete), outcome
    return outcome


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for something that another task brings about."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
