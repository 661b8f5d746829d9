"""A server of MQTT that says what a test wants, and which no real one would say on demand."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from menzil.deliver.protocol import Endpoint
from tests.brokers.stage import fresh

CONNECT, PUBLISH, PUBREL, PINGREQ, GOODBYE = 1, 3, 6, 12, 14


@dataclass
class Published:
    """A PUBLISH packet, taken apart by another code than the one that wrote it."""

    topic: str
    qos: int
    retain: bool
    id: int
    payload: bytes
    properties: dict[int, Any] = field(default_factory=dict)
    user: dict[str, str] = field(default_factory=dict)
    size: int = 0


@dataclass
class Login:
    """A CONNECT packet."""

    version: int
    clean: bool
    keepalive: int
    client_id: str
    username: str | None
    password: str | None


class Client:
    """One connection as the server sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.login: Login | None = None
        self.pings = 0

    async def packet(self) -> tuple[int, bytes]:
        """The next packet, pings answered and left out."""
        while True:
            head = (await self.reader.readexactly(1))[0]
            size = shift = 0
            while True:
                byte = (await self.reader.readexactly(1))[0]
                size |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            body = await self.reader.readexactly(size)
            if head >> 4 == PINGREQ:
                self.pings += 1
                self.writer.write(b"\xd0\x00")
                continue
            return head, body

    async def greet(self, code: int = 0, properties: bytes = b"") -> Login:
        """Read CONNECT and answer it."""
        head, body = await self.packet()
        assert head == 0x10
        at = 6
        version, flags, keepalive = struct.unpack_from(">BBH", body, at)
        at += 4
        if version == 5:
            at += 1 + body[at]
        texts = []
        while at < len(body):
            (long,) = struct.unpack_from(">H", body, at)
            texts.append(body[at + 2 : at + 2 + long].decode())
            at += 2 + long
        username = texts[1] if flags & 0x80 else None
        self.login = Login(version, bool(flags & 2), keepalive, texts[0], username, texts[-1] if flags & 0x40 else None)
        more = bytes([len(properties)]) + properties if version == 5 else b""
        self.writer.write(bytes([0x20, 2 + len(more), 0, code]) + more)
        return self.login

    async def published(self) -> Published:
        """The next PUBLISH; other packets are an error."""
        head, body = await self.packet()
        assert head >> 4 == PUBLISH, hex(head)
        qos = head >> 1 & 3
        (long,) = struct.unpack_from(">H", body, 0)
        topic, at = body[2 : 2 + long].decode(), 2 + long
        number = 0
        if qos:
            (number,) = struct.unpack_from(">H", body, at)
            at += 2
        found = Published(topic, qos, bool(head & 1), number, b"", size=len(body))
        assert self.login is not None
        if self.login.version == 5:
            at = self._properties(body, at, found)
        found.payload = body[at:]
        return found

    def _properties(self, body: bytes, at: int, found: Published) -> int:
        size = shift = 0
        while True:
            byte = body[at]
            at += 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        end = at + size
        while at < end:
            name, at = body[at], at + 1
            if name == 0x02:
                (found.properties[name],) = struct.unpack_from(">I", body, at)
                at += 4
                continue
            texts = []
            for _ in range(2 if name == 0x26 else 1):
                (long,) = struct.unpack_from(">H", body, at)
                texts.append(body[at + 2 : at + 2 + long])
                at += 2 + long
            if name == 0x26:
                found.user[texts[0].decode()] = texts[1].decode()
            else:
                found.properties[name] = texts[0]
        return end

    def acknowledge(self, number: int, code: int | None = None, *, kind: int = 0x40, reason: str | None = None) -> None:
        """Answer a message: PUBACK, or with 0x50 PUBREC and with 0x70 PUBCOMP."""
        body = struct.pack(">H", number)
        if code is not None:
            body += bytes([code])
        if reason is not None:
            said = b"\x1f" + struct.pack(">H", len(reason.encode())) + reason.encode()
            body += bytes([len(said)]) + said
        self.writer.write(bytes([kind, len(body)]) + body)

    async def released(self) -> tuple[int, int]:
        """The next PUBREL: its packet id and its code."""
        head, body = await self.packet()
        assert head == 0x62, hex(head)
        return int.from_bytes(body[:2], "big"), body[2] if len(body) > 2 else 0

    async def silence(self) -> None:
        """Read on and answer nothing but pings, until the client goes."""
        while True:
            await self.packet()


Talk = Callable[[Client], Awaitable[None]]


@asynccontextmanager
async def peer(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve each connection with `talk`; a failed assertion in it fails the test."""
    wrong: list[BaseException] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
                await talk(Client(reader, writer))
        except AssertionError as error:
            wrong.append(error)
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]
    assert not wrong, wrong


def endpoint(port: int, topic: str = "orders", **config: Any) -> Endpoint:
    """An endpoint on loopback."""
    known = {"host": "127.0.0.1", "port": port, "topic": topic, **config}
    return Endpoint(int(fresh("")), "billing", "mqtt", known, datetime.now(UTC))
