"""A connection of AMQP with one channel: the login, heartbeats, and frames to those that they concern."""

from __future__ import annotations

import asyncio
import socket
from abc import abstractmethod

from pamqp import base, commands
from pamqp.heartbeat import Heartbeat

from menzil.deliver.amqp.answers import said
from menzil.deliver.amqp.frames import CHANNEL, CLOSE, CLOSE_OK, HEARTBEAT, OPENING, Frame, Frames
from menzil.deliver.amqp.greeting import Greeting
from menzil.deliver.broker.errors import EndpointError, UnknownError
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.session import CodecError, Session


class AmqpLine(Session):
    """What publishers and consumers have in common."""

    speaks = "AMQP"
    confirms = True  # whether the server must be able to confirm messages

    def __init__(self, plan: Plan, host: str, peer: str, sock: socket.socket) -> None:
        super().__init__(plan, host, peer, sock)
        self._frames = Frames()
        self._greeting_words = Greeting(plan, peer, confirms=self.confirms)
        self.is_ready = False  # the greeting is over
        self._beats: asyncio.TimerHandle | None = None
        self._heard_at = asyncio.get_running_loop().time()

    @abstractmethod
    def ready(self, frame_max: int) -> None:
        """The channel is open."""

    @abstractmethod
    def on_channel(self, frame: Frame) -> None:
        """Take a frame of the channel. Raises CodecError."""

    def on_connection(self, frame: base.Frame) -> None:
        """Take a method of the connection. Raises CodecError."""
        if not isinstance(frame, commands.Connection.Close):
            raise CodecError(f"{frame.name} has no place here")
        self.write(CLOSE_OK)
        self.fail(UnknownError(f"{self.peer} closed the connection: {said(frame)}"))

    async def greet(self) -> None:
        """Log in and open the channel."""
        self.write(OPENING)
        await self.hear()

    def _greeted(self, channel: int, frame: Frame) -> None:
        """Take the next answer of the greeting."""
        try:
            answer = self._greeting_words.answer(channel, frame)
        except EndpointError as error:
            self.fail(error)
            return
        if answer is not None:
            self.write(answer)
            return
        self.is_ready = True
        self.ready(self._greeting_words.frame_max)
        self._beat(self._greeting_words.heartbeat)
        self.heard()

    def _beat(self, seconds: float) -> None:
        """Let the server know twice per interval that we are there, and find out whether it is."""
        loop = asyncio.get_running_loop()
        if not self.is_open:
            return
        if loop.time() - self._heard_at > 2 * seconds:
            self.fail(UnknownError(f"No sign of life from {self.peer} for {2 * seconds:g} s"))
            return
        self.write(HEARTBEAT)
        self._beats = loop.call_later(seconds / 2, self._beat, seconds)

    def feed(self, data: bytes) -> None:
        """Read frames."""
        self._heard_at = asyncio.get_running_loop().time()
        for channel, frame in self._frames.feed(data):
            if not self.is_open:
                return
            if isinstance(frame, Heartbeat):
                continue
            if not self.is_ready:
                self._greeted(channel, frame)
            elif channel == CHANNEL:
                self.on_channel(frame)
            elif channel == 0 and isinstance(frame, base.Frame):
                self.on_connection(frame)
            else:
                raise CodecError("a frame has no place here")

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed. Older servers do that instead of refusing a login."""
        if not self.is_ready and self._greeting_words.has_logged_in:
            self.fail(EndpointError(f"{self.peer} closed the connection after the login: is the password right?"))
        super().connection_lost(exc)

    def abort(self) -> None:
        """Close: with a farewell when nothing is under way, and else at once."""
        if self._beats is not None:
            self._beats.cancel()
        transport = self.transport
        is_idle = self.keepable and self.batch is None and self.is_ready
        if is_idle and transport is not None and not transport.get_write_buffer_size():
            self.write(CLOSE)
            self.is_open = self.keepable = False
            transport.close()
        else:
            super().abort()
