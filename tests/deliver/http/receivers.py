"""Receivers on loopback: raw ones that may misbehave, and a well-behaved one that shares no code with the deliverer."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from aiohttp import web

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Handle = Callable[[Reader, Writer], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@dataclass
class Raw:
    """A raw receiver at work."""

    url: str
    port: int
    connections: int = 0
    open: int = 0


@asynccontextmanager
async def raw(handle: Handle, tls: ssl.SSLContext | None = None) -> AsyncIterator[Raw]:
    """Call `handle` for every connection; whatever it leaves open is closed at the end."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: Reader, writer: Writer) -> None:
        at_work.connections += 1
        at_work.open += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(ConnectionError, ssl.SSLError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await handle(reader, writer)
        finally:
            writer.close()
            at_work.open -= 1
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls, limit=1 << 22)
    port = server.sockets[0].getsockname()[1]
    at_work = Raw(f"{'https' if tls else 'http'}://127.0.0.1:{port}/hook", port)
    try:
        yield at_work
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read_request(reader: Reader) -> bytes:
    """Read a whole request; IncompleteReadError when there is none."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return head + await reader.readexactly(int(line[15:]))
    return head


def answering(*answers: bytes) -> Handle:
    """Answer the requests of a connection with these bytes, one after another, the last one again and again."""

    async def handle(reader: Reader, writer: Writer) -> None:
        turn = 0
        while True:
            await read_request(reader)
            writer.write(answers[min(turn, len(answers) - 1)])
            turn += 1
            await writer.drain()

    return handle


def reset(writer: Writer) -> None:
    """Close a connection the rude way, with RST."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    writer.transport.abort()


@dataclass
class Seen:
    """A request as the well-behaved receiver saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Polite:
    """The well-behaved receiver at work."""

    url: str
    seen: list[Seen]

    @property
    def last(self) -> Seen:
        return self.seen[-1]


Answerer = Callable[[Seen], web.Response | Awaitable[web.Response]]


@asynccontextmanager
async def polite(answer: Answerer | None = None, tls: ssl.SSLContext | None = None) -> AsyncIterator[Polite]:
    """An aiohttp server that takes down what it is sent and answers 200, or what `answer` says."""
    seen: list[Seen] = []

    async def handle(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert len(headers) == len(request.headers), "a header was sent twice"
        seen.append(Seen(request.method, request.path_qs, headers, await request.read()))
        said = answer(seen[-1]) if answer else web.Response(text="thank you")
        return said if isinstance(said, web.Response) else await said

    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield Polite(f"{'https' if tls else 'http'}://127.0.0.1:{port}", seen)
    finally:
        await runner.cleanup()
