"""A connection to RabbitMQ: one channel with confirms, and what the server says about messages by their tags."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence

from pamqp import base, commands, header

from menzil.deliver.amqp.answers import SUSPICIOUS, guilty, refused, returned, said, too_large
from menzil.deliver.amqp.frames import Confirm, Frame, Piece, method
from menzil.deliver.amqp.line import AmqpLine
from menzil.deliver.amqp.publication import Publications
from menzil.deliver.amqp.tags import Tags
from menzil.deliver.broker.batch import Batch
from menzil.deliver.broker.envelope import compose
from menzil.deliver.broker.errors import EndpointError, MessageError, bad_endpoint, bad_message
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.session import CHUNK, CodecError
from menzil.model.message import Message
from menzil.model.outcome import Complete, Defer, Outcome
from menzil.telemetry.tracing import CARRIED

#: Tells later connections of the endpoint that one message of a batch made the server close the channel.
SUSPECTS = "suspects"
#: The part of the deadline for which a batch waits while the server blocks publishers.
_PART = 0.8


class AmqpSession(AmqpLine):
    """One connection with one channel."""

    def __init__(self, plan: Plan, host: str, peer: str, sock: socket.socket) -> None:
        super().__init__(plan, host, peer, sock)
        self._publications: Publications | None = None  # None until the greeting is over
        self._blocked: str | None = None  # why the server takes no messages at the moment
        self._unblocked = asyncio.Event()
        self._unblocked.set()
        self._return: commands.Basic.Return | None = None
        self._return_left = 0  # bytes of its body that are still to come
        self._tags = Tags()
        self._began_at = 0.0
        self._news = asyncio.Event()  # something was said about a message, or the connection is over
        self._messages: Sequence[Message] = ()
        self._by_id: dict[str, int] | None = None

    def ready(self, frame_max: int) -> None:
        """The channel is open."""
        self._publications = Publications(self.plan.config, frame_max)

    # The batch

    def began(self, left: float) -> None:  # noqa: ARG002 # the server has no part in the deadline
        """Begin a batch."""
        self._tags.begin()
        self._by_id = None
        self._began_at = asyncio.get_running_loop().time()

    async def publish(self, messages: Sequence[Message], batch: Batch, left: float) -> None:
        """Write a batch, and wait until it is over.

        After a message that made the server close the channel, the messages of the next batch go one by one: then it is
        known which one it is.
        """
        self.batch, self._messages = batch, messages
        if self._lost is not None:
            batch.break_off(EndpointError(str(self._lost)))
            return
        self.began(left)
        is_careful = SUSPECTS in self.plan.notes
        ends = self._began_at + left * _PART
        chunk = bytearray()
        try:
            for piece in self.encode(messages, batch):
                chunk += piece
                if not is_careful and len(chunk) < CHUNK:
                    continue
                await self._send(chunk, ends)
                chunk = bytearray()
                while is_careful and not batch.is_over and batch.outcomes[self._tags.latest] is None:
                    self._news.clear()
                    await self._news.wait()
                if batch.is_over:
                    break
            if chunk and not batch.is_over:
                await self._send(chunk, ends)
            await batch.over()
        except _BlockedError:
            self._hold_back(batch)
            await batch.over()  # messages that were written before may still be confirmed
        except asyncio.CancelledError:
            self._hold_back(batch)  # the deadline
            raise
        if is_careful and batch.error is None and self.keepable:
            self.plan.notes.discard(SUSPECTS)

    async def _send(self, chunk: bytearray, ends: float) -> None:
        """Write, as soon as the server takes something."""
        if self._blocked is not None:
            try:
                async with asyncio.timeout_at(ends):
                    await self._unblocked.wait()
            except TimeoutError:
                raise _BlockedError from None
        self._tags.wrote()
        await self._write(chunk)

    def _hold_back(self, batch: Batch) -> None:
        """Settle what was not written: it may wait, and only a server that blocks publishers is to blame."""
        written = self._tags.written()
        outcome: Outcome = Defer()
        if self._blocked is not None:
            outcome = bad_endpoint(f"{self.peer} blocks publishers: {self._blocked}")
        for place in range(len(batch.outcomes)):
            if place not in written:
                batch.settle(place, outcome)

    def encode(self, messages: Sequence[Message], batch: Batch) -> Iterator[bytes]:
        """Yield the frames of each message."""
        plan, traces, publications = self.plan, CARRIED.get() or {}, self._publications
        assert publications is not None
        for place, message in enumerate(messages):
            try:
                envelope = compose(message, plan.headers, plan.events, traces.get(message.id))
                piece = publications.frames(envelope)
            except (MessageError, UnicodeEncodeError) as error:
                words = str(error) if isinstance(error, MessageError) else "The message has text that is no Unicode."
                batch.settle(place, bad_message(words))
                continue
            self._tags.add(place, len(envelope.body))
            yield piece

    # What the server says

    def on_connection(self, frame: base.Frame) -> None:
        """Take a method of the connection."""
        match frame:
            case commands.Connection.Blocked():
                self._block(frame.reason or "no reason given")
            case commands.Connection.Unblocked():
                self._block(None)
            case _:
                if isinstance(frame, commands.Connection.Close) and frame.reply_code in SUSPICIOUS:
                    self.plan.notes.update({SUSPECTS} if len(self._tags.written()) > 1 else ())
                super().on_connection(frame)

    def _block(self, reason: str | None) -> None:
        self._blocked = reason
        if reason is None:
            self._unblocked.set()
        else:
            self._unblocked.clear()

    def on_channel(self, frame: Frame) -> None:
        """Take what the server says about messages."""
        if self._return is not None:
            self._came_back(self._return, frame)
        elif isinstance(frame, Confirm):
            self._confirmed(frame)
        elif isinstance(frame, commands.Basic.Return):
            self._return, self._return_left = frame, -1
        elif isinstance(frame, commands.Channel.Close):
            self.write(method(commands.Channel.CloseOk()))
            self._channel_closed(frame)
        elif isinstance(frame, commands.Channel.Flow):
            self.write(method(commands.Channel.FlowOk(frame.active)))
            self._block(None if frame.active else "channel.flow")
        else:
            raise CodecError("a frame has no place here")

    def _confirmed(self, confirm: Confirm) -> None:
        """Settle one message, or all up to it. Tags of earlier batches settle nothing."""
        batch = self.batch
        milliseconds = round((asyncio.get_running_loop().time() - self._began_at) * 1000)
        no = None if confirm.is_ack else refused(self.peer)
        for tag, place in self._tags.named_by(confirm):
            if batch is not None:
                batch.settle(place, no or Complete({"delivery_tag": tag, "confirm_ms": milliseconds}))
        self._news.set()

    def _came_back(self, answer: commands.Basic.Return, frame: Frame) -> None:
        """Take the parts of a message that came back. Its ack follows, and says nothing about queues."""
        if isinstance(frame, header.ContentHeader) and self._return_left < 0:
            self._return_left = frame.body_size
            if self.batch is not None:
                dead_letter = self.plan.config.get("unroutable") == "dead_letter"
                self.batch.settle(
                    self._place_of(frame.properties.message_id), returned(answer, self.peer, dead_letter=dead_letter)
                )
                self._news.set()
        elif isinstance(frame, Piece) and 0 < len(frame.content) <= self._return_left:
            self._return_left -= len(frame.content)
        else:
            raise CodecError("a message that came back is not complete")
        if not self._return_left:
            self._return = None

    def _place_of(self, id: str | None) -> int:
        """Return which message this is. An unknown one could be any of those that are under way."""
        if self._by_id is None:
            self._by_id = {message.wire_id: place for place, message in enumerate(self._messages)}
        if id not in self._by_id:
            raise CodecError("a message came back that was not sent")
        return self._by_id[id]

    def _channel_closed(self, close: commands.Channel.Close) -> None:
        """Find the message that made the server close the channel. The others may be written, and are not to blame."""
        self.keepable = False
        batch = self.batch
        if batch is None:
            self.fail(EndpointError(f"{self.peer} closed the channel: {said(close)}"))
            return
        suspects = {place: size for place, size in self._tags.written().items() if batch.outcomes[place] is None}
        blamed = too_large(close, suspects) or (list(suspects) if len(suspects) == 1 else [])
        if suspects and not blamed:
            self.plan.notes.add(SUSPECTS)
        for place in blamed:
            batch.settle(place, guilty(close, self.peer))
        for place in range(len(batch.outcomes)):
            batch.settle(place, Defer())
        self._news.set()

    # The end

    def fail(self, error: Exception) -> None:
        """Nothing more comes from this connection."""
        super().fail(error)
        self._unblocked.set()
        self._news.set()


class _BlockedError(Exception):
    """The server blocks publishers until the end of the time."""
