"""HTTP clients alone: POSTs to one receiver, a hundred at a time, by our own client and by aiohttp."""

from __future__ import annotations

import asyncio
import importlib
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

from bench import loops
from bench.crew import Step
from bench.payloads import payload, text
from menzil.deliver.http import Http
from menzil.deliver.protocol import Endpoint, Surroundings
from menzil.deliver.wire import Client, Route
from menzil.model.message import Message

AT_ONCE = 100
ROUND = 1000  # requests of one step

Send = Callable[[], Awaitable[None]]


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=loops.factory())


def _step(send: Send) -> Step:
    async def line(count: int) -> None:
        for _ in range(count):
            await send()

    async def round() -> int:
        await asyncio.gather(*(line(ROUND // AT_ONCE) for _ in range(AT_ONCE)))
        return ROUND

    return lambda: _runner().run(round())


def protocol(_dsn: str, url: str, **_: object) -> Step:
    """All a worker does for a delivery: from a message to an outcome."""
    http = Http(Surroundings({"http_allow_internal_urls": "true"}, "bench"))
    endpoint = Endpoint(1, "bench", "http", {"url": url}, datetime.now(UTC))
    message = Message(1, "bench", payload(1))

    async def send() -> None:
        await http.deliver(message, endpoint)

    return _step(send)


def wire(_dsn: str, url: str, **_: object) -> Step:
    """The client under it: bytes out, an answer back."""
    port, body = int(url.split(":")[2].split("/")[0]), text(1).encode()
    route, addresses = Route("127.0.0.1", port, None), [(socket.AF_INET, "127.0.0.1")]
    head = f"POST /hook HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    data = f"{head}content-length: {len(body)}\r\n\r\n".encode()

    async def make() -> Client:
        return Client()

    client = _runner().run(make())

    async def send() -> None:
        now = client.loop.time()
        await client.exchange(route, addresses, data, body, started=now, seconds=30, connect_seconds=5)

    return _step(send)


@cache
def _session() -> Any:
    library: Any = importlib.import_module("aiohttp")

    async def make() -> Any:
        return library.ClientSession(connector=library.TCPConnector(limit=0))

    return _runner().run(make())


def aiohttp(_dsn: str, url: str, **_: object) -> Step:
    """What most programs would use."""
    body, headers = text(1).encode(), {"content-type": "application/json"}
    session = _session()

    async def send() -> None:
        async with session.post(url, data=body, headers=headers) as answer:
            await answer.read()

    return _step(send)
