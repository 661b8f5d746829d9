"""Opening a connection: to the judged address, through the proxy if there is one, with TLS if it is wanted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ssl import SSLContext, SSLError
from typing import cast

from menzil.deliver.wire.connection import HEAD_LIMIT, Connection
from menzil.deliver.wire.errors import DeadlineError, WireError, broken
from menzil.deliver.wire.pool import Pool
from menzil.deliver.wire.route import Address, Route


async def open_connection(
    pool: Pool, route: Route, addresses: Sequence[Address], deadline: float, seconds: float
) -> Connection:
    """Return a new connection to the first address that takes it. The time left is shared by the addresses left."""
    loop = pool.loop
    port = route.proxy.port if route.proxy else route.port
    error = WireError("The host has no address")
    for place, address in enumerate(addresses):
        peer = f"[{address[1]}]:{port}" if ":" in address[1] else f"{address[1]}:{port}"
        now = loop.time()
        step = _Step()
        try:
            async with asyncio.timeout_at(now + (deadline - now) / (len(addresses) - place)):
                connection = await _open(pool, route, address, peer, step)
        except TimeoutError as timeout:
            # The kernel's own timeout is an OSError with a number; that of the deadline has none.
            doing = broken(timeout, peer, step.doing) if timeout.errno else _late(peer, seconds, step.doing)
            error = DeadlineError(doing)
        except (OSError, SSLError) as failure:
            error = WireError(broken(failure, peer, step.doing))
        except WireError as failure:
            error = failure
        else:
            if pool.closed:
                connection.abort()
                raise WireError("The worker is stopping")
            return connection
    raise error


def _late(peer: str, seconds: float, doing: str) -> str:
    return f"No connection to {peer} within {seconds:g} s ({doing})"


class _Step:
    """What is being done, for the sentence that says what failed."""

    doing = "connecting"


async def _open(pool: Pool, route: Route, address: Address, peer: str, step: _Step) -> Connection:
    loop = pool.loop
    proxy = route.proxy
    connection = Connection(pool, route, address[1], peer)
    sock = await _dial(loop, address, proxy.port if proxy else route.port)
    first = proxy.tls if proxy else route.tls
    name = (proxy.host if proxy else route.host) if first else None
    protocol = _Tunnel(loop) if proxy and route.tls else connection
    step.doing = "TLS handshake" if first else "connecting"
    try:
        transport, _ = await loop.create_connection(lambda: protocol, sock=sock, ssl=first, server_hostname=name)
    except BaseException:
        sock.close()
        raise
    if isinstance(protocol, _Tunnel):
        try:
            step.doing = "asking the proxy"
            await protocol.ask(transport, route, peer)
            step.doing = "TLS handshake through the proxy"
            await _wrap(loop, transport, connection, cast(SSLContext, route.tls), route.host)
        except BaseException:
            transport.abort()
            raise
    return connection


async def _dial(loop: asyncio.AbstractEventLoop, address: Address, port: int) -> socket.socket:
    sock = socket.socket(address[0], socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(sock, (address[1], port))
    except BaseException:
        sock.close()
        raise
    return sock


async def _wrap(
    loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, inner: Connection, tls: SSLContext, host: str
) -> None:
    wrapped = await loop.start_tls(transport, inner, tls, server_hostname=host)
    if wrapped is None:
        raise ConnectionResetError
    inner.connection_made(wrapped)


class _Tunnel(asyncio.Protocol):
    """Asks a proxy for a way through (CONNECT), and waits for its yes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._heard = b""
        self._reply: asyncio.Future[bytes] = loop.create_future()

    async def ask(self, transport: asyncio.Transport, route: Route, peer: str) -> None:
        assert route.proxy is not None
        lines = [f"CONNECT {route.authority} HTTP/1.1", f"host: {route.authority}"]
        if route.proxy.authorization:
            lines.append(f"proxy-authorization: {route.proxy.authorization}")
        transport.write(("\r\n".join(lines) + "\r\n\r\n").encode("ascii"))
        head = await self._reply
        version, _, rest = head.partition(b" ")
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or not rest[:3].isdigit():
            raise WireError(f"The answer of the proxy {peer} is not HTTP")
        if not rest.startswith(b"2"):
            raise WireError(f"The proxy {peer} refused the connection: HTTP {rest[:3].decode('ascii')}")

    def data_received(self, data: bytes) -> None:
        if self._reply.done():
            return
        self._heard += data
        head, end, rest = self._heard.partition(b"\r\n\r\n")
        if end and not rest:
            self._reply.set_result(head)
        elif end or len(self._heard) > HEAD_LIMIT:
            self._reply.set_exception(WireError("The proxy said more than it was asked"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._reply.done():
            self._reply.set_exception(exc or ConnectionResetError())
