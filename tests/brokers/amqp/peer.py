"""A server of AMQP 0-9-1 that says what a test wants, which no real one would say on demand. Its codec is pamqp."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from pamqp import base, body, commands, frame, header

from menzil.deliver.protocol import Endpoint
from tests.brokers.stage import fresh

Method = TypeVar("Method", bound=base.Frame)
HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"


@dataclass
class Published:
    """A message as it came."""

    tag: int
    method: commands.Basic.Publish
    properties: commands.Basic.Properties
    body: bytes
    frames: list[int]  # bytes of each frame, all of it


class Line:
    """One connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.tag = self.heartbeats = 0
        self.login: commands.Connection.StartOk | None = None
        self.tuned: commands.Connection.TuneOk | None = None
        self.opened: commands.Connection.Open | None = None

    async def raw(self) -> tuple[Any, int]:
        """The next frame, and its bytes. Heartbeats are counted and left out."""
        while True:
            head = await self.reader.readexactly(7)
            size = struct.unpack(">BHI", head)[2]
            data = head + await self.reader.readexactly(size + 1)
            if data == HEARTBEAT:
                self.heartbeats += 1
                continue
            found = frame.unmarshal(data)[2]
            if isinstance(found, commands.Connection.Close):
                self.say(commands.Connection.CloseOk(), 0)
                raise ConnectionResetError  # the client says goodbye
            return found, len(data)

    async def expect(self, kind: type[Method]) -> Method:
        found, _ = await self.raw()
        assert isinstance(found, kind), found
        return found

    def say(self, method: Any, channel: int = 1) -> None:
        self.writer.write(frame.marshal(method, channel))

    async def greet(
        self, *, frame_max: int = 131072, heartbeat: int = 60, mechanisms: str = "PLAIN EXTERNAL", confirms: bool = True
    ) -> None:
        """A login, as RabbitMQ does it."""
        assert await self.reader.readexactly(8) == b"AMQP\x00\x00\x09\x01"
        able: Any = {"publisher_confirms": True, "basic.nack": True, "connection.blocked": True}
        self.say(commands.Connection.Start(0, 9, {"product": "Peer", "capabilities": able}, mechanisms, "en_US"), 0)
        self.login = await self.expect(commands.Connection.StartOk)
        self.say(commands.Connection.Tune(2047, frame_max, heartbeat), 0)
        self.tuned = await self.expect(commands.Connection.TuneOk)
        self.opened = await self.expect(commands.Connection.Open)
        self.say(commands.Connection.OpenOk(), 0)
        await self.expect(commands.Channel.Open)
        self.say(commands.Channel.OpenOk())
        if confirms:
            await self.expect(commands.Confirm.Select)
            self.say(commands.Confirm.SelectOk())

    async def serve(self, *bodies: tuple[bytes, str | None], heartbeat: int = 60) -> None:
        """A consumer's login, and messages with their ids for it."""
        await self.greet(confirms=False, heartbeat=heartbeat)
        await self.expect(commands.Basic.Qos)
        self.say(commands.Basic.QosOk())
        await self.expect(commands.Basic.Consume)
        self.say(commands.Basic.ConsumeOk("menzil"))
        for tag, (content, id) in enumerate(bodies, 1):
            self.deliver(tag, content, id)

    def deliver(self, tag: int, content: bytes, id: str | None) -> None:
        """A message for a consumer, in bodies that fit into a frame."""
        self.say(commands.Basic.Deliver("menzil", tag, False, "", "q"))
        self.say(header.ContentHeader(0, len(content), commands.Basic.Properties(message_id=id)))
        for at in range(0, max(1, len(content)), 100_000):
            self.say(body.ContentBody(content[at : at + 100_000]))

    async def acknowledged(self) -> int:
        """The tag of the next ack; questions about the queue are answered."""
        while True:
            found, _ = await self.raw()
            if isinstance(found, commands.Queue.Declare):
                self.say(commands.Queue.DeclareOk("q", 0, 1))
                continue
            assert isinstance(found, commands.Basic.Ack), found
            return int(found.delivery_tag or 0)

    async def message(self) -> Published:
        """The next message, whole."""
        method, size = await self.raw()
        assert isinstance(method, commands.Basic.Publish), method
        sizes, (head, size_of_head), content = [size], await self.raw(), b""
        assert isinstance(head, header.ContentHeader)
        sizes.append(size_of_head)
        while len(content) < head.body_size:
            part, size = await self.raw()
            assert isinstance(part, body.ContentBody)
            content += part.value
            sizes.append(size)
        self.tag += 1
        return Published(self.tag, method, head.properties, content, sizes)

    async def messages(self, count: int) -> list[Published]:
        return [await self.message() for _ in range(count)]

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        self.say(commands.Basic.Ack(tag, multiple))

    def nack(self, tag: int, *, multiple: bool = False) -> None:
        self.say(commands.Basic.Nack(tag, multiple))

    def give_back(self, one: Published, *, split: int | None = None) -> None:
        """A return: the message as it came, in bodies of `split` bytes."""
        self.say(commands.Basic.Return(312, "NO_ROUTE", one.method.exchange, one.method.routing_key))
        self.say(header.ContentHeader(0, len(one.body), one.properties))
        step = split or max(1, len(one.body))
        for at in range(0, len(one.body), step):
            self.say(body.ContentBody(one.body[at : at + step]))

    def close_channel(self, code: int, text: str) -> None:
        self.say(commands.Channel.Close(code, text, 60, 40))

    def close(self, code: int, text: str) -> None:
        self.say(commands.Connection.Close(code, text, 0, 0), 0)

    def block(self, reason: str) -> None:
        self.say(commands.Connection.Blocked(reason), 0)

    def unblock(self) -> None:
        self.say(commands.Connection.Unblocked(), 0)

    async def end(self) -> None:
        """Read until the client is gone."""
        while await self.reader.read(65536):
            pass


Talk = Callable[[Line], Awaitable[None]]


@asynccontextmanager
async def peer(*talks: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server: the first connection is led by the first talk, and so on; the last one leads all that follow."""
    number, wrong = 0, []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal number
        talk = talks[min(number, len(talks) - 1)]
        number += 1
        try:
            await talk(Line(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except AssertionError as error:
            wrong.append(error)
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]
    assert not wrong, wrong


def amqp_endpoint(port: int, routing_key: str = "orders", /, **config: Any) -> Endpoint:
    known = {"host": "127.0.0.1", "port": port, "exchange": "", "routing_key": routing_key, **config}
    return Endpoint(int(fresh("")), "billing", "amqp", known, datetime.now(UTC))
