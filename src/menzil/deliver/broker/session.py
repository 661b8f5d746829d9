"""A connection to a broker: bytes out in large writes, bytes in to the codec of the protocol, one batch at a time."""

from __future__ import annotations

import asyncio
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import cast

from menzil.deliver.broker.batch import Batch
from menzil.deliver.broker.errors import EndpointError, UnknownError
from menzil.deliver.broker.plan import Plan
from menzil.deliver.wire.errors import broken
from menzil.model.message import Message

#: Bytes of one write.
CHUNK = 256 * 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 seconds


class CodecError(Exception):
    """The other side does not speak the protocol."""


class Session(asyncio.Protocol, ABC):
    """One connection of one endpoint. It carries one batch at a time: the next one follows when all is acknowledged."""

    speaks = "the protocol"  # as errors name it

    def __init__(self, plan: Plan, host: str, peer: str, sock: socket.socket) -> None:
        self.plan = plan
        self.host = host  # the name that a certificate must have
        self.peer = peer
        self.transport: asyncio.Transport | None = None
        self.idle_since = 0.0
        self.is_open = True
        self.keepable = True  # whether another batch may follow
        self.batch: Batch | None = None
        self._sock = sock
        self._lost: Exception | None = None
        self._greeting: asyncio.Future[None] | None = None
        self._is_early = False  # an answer came before the greeting waited for it
        self._flows = asyncio.Event()
        self._flows.set()

    # What each protocol does in its own way

    @abstractmethod
    async def greet(self) -> None:
        """Log in. Raises EndpointError."""

    @abstractmethod
    def encode(self, messages: Sequence[Message], batch: Batch) -> Iterable[bytes]:
        """Yield the bytes of a batch. A message that cannot be written is settled here, and yields nothing."""

    @abstractmethod
    def feed(self, data: bytes) -> None:
        """Read what came. Raises CodecError."""

    @abstractmethod
    def began(self, left: float) -> None:
        """A batch begins, with so many seconds left for it."""

    # The batch

    async def publish(self, messages: Sequence[Message], batch: Batch, left: float) -> None:
        """Write a batch, and wait until it is over."""
        self.batch = batch
        if self._lost is not None:
            batch.break_off(EndpointError(str(self._lost)))
            return
        self.began(left)
        pieces: list[bytes] = []
        size = 0
        for piece in self.encode(messages, batch):
            pieces.append(piece)
            size += len(piece)
            if size >= CHUNK:
                await self._write(b"".join(pieces))
                pieces, size = [], 0
                if batch.error is not None:
                    return
        if pieces:
            await self._write(b"".join(pieces))
        await batch.over()

    async def _write(self, chunk: bytes | bytearray) -> None:
        if self.transport is not None and self.is_open:
            self.transport.write(chunk)
            await self._flows.wait()

    def over(self) -> None:
        """Forget the batch: what comes later settles nothing."""
        self.batch = None

    # Greeting

    async def hear(self) -> None:
        """Wait for what the greeting waits for, which `feed` tells by `heard`."""
        if self._lost is not None:
            raise EndpointError(str(self._lost))
        if self._is_early:
            self._is_early = False
            return
        self._greeting = asyncio.get_running_loop().create_future()
        try:
            await self._greeting
        finally:
            self._greeting = None

    def heard(self, error: Exception | None = None) -> None:
        """The greeting got its answer. A server that speaks first may do so before the greeting waits."""
        if self._greeting is None:
            self._is_early = error is None
        elif not self._greeting.done():
            if error is None:
                self._greeting.set_result(None)
            else:
                self._greeting.set_exception(error)

    def write(self, data: bytes) -> None:
        """Write something small."""
        if self.transport is not None and self.is_open:
            self.transport.write(data)

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember how to write."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Pass on what came."""
        try:
            self.feed(data)
        except CodecError as error:
            self.fail(UnknownError(f"The answer of {self.peer} is not what was asked for: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self.fail(UnknownError(broken(exc, self.peer, "waiting for acknowledgements")))

    def pause_writing(self) -> None:
        """The kernel takes no more."""
        self._flows.clear()

    def resume_writing(self) -> None:
        """It takes more."""
        self._flows.set()

    # The end

    def fail(self, error: Exception) -> None:
        """Nothing more comes from this connection."""
        if self._lost is None:
            self._lost = error
        self.is_open = self.keepable = False
        self._flows.set()
        if self.batch is not None:
            self.batch.break_off(error)
        self.heard(EndpointError(str(error)))
        self.abort()

    def abort(self) -> None:
        """Close at once. What the kernel has not sent yet is thrown away: it must not arrive after a retry."""
        self.is_open = self.keepable = False
        with suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        if self.transport is not None:
            self.transport.abort()
