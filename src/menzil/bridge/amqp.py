"""The source `amqp`: a queue of RabbitMQ. It has no positions: a message is acknowledged when its batch is committed.

After a crash in between the server delivers messages again. The id of a message keeps its repeat away, as long as
idempotency keys are kept; a message without an id may then come in twice.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from datetime import datetime
from typing import Any

from pamqp import base, commands, header

from menzil.bridge.asking import Asking, dialled
from menzil.bridge.holding import Holding
from menzil.bridge.source import Batch, Positions, Record, Source, SourceError
from menzil.deliver.amqp.answers import said
from menzil.deliver.amqp.frames import Frame, Piece, Unread, method
from menzil.deliver.amqp.line import AmqpLine
from menzil.deliver.amqp.protocol import target
from menzil.deliver.broker.batch import Batch as Outgoing
from menzil.deliver.broker.errors import UnknownError
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.session import CodecError
from menzil.model.message import Message

#: Messages that the server may send ahead of their acknowledgements, where the config names no batch.
AHEAD = 500
#: Seconds for an answer that the server gives at once.
ANSWER = 10.0
#: Bytes of one message, at most.
_LONGEST = 536_870_912
#: How CloudEvents are spelled in headers of AMQP, with a sign that headers of menzil may not have.
_EVENTS = ("cloudEvents:", "cloudEvents_")


class AmqpReader(Asking, Holding, AmqpLine):
    """A connection that consumes from one queue."""

    confirms = False

    def __init__(self, plan: Plan, host: str, peer: str, sock: socket.socket) -> None:
        super().__init__(plan, host, peer, sock)
        self.records: deque[Record] = deque()
        self.came = asyncio.Event()
        self._asked: deque[asyncio.Future[base.Frame]] = deque()
        self._deliver: commands.Basic.Deliver | None = None
        self._head: header.ContentHeader | Unread | None = None
        self._parts: list[bytes] = []
        self._left = 0  # bytes of the body that are still to come
        self._drops = False  # messages, until the channel is closed

    def question(self, question: base.Frame) -> asyncio.Future[base.Frame]:
        """Send a method, and return what its answer will be."""
        answer: asyncio.Future[base.Frame] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self.write(method(question))
        return answer

    async def ask(self, question: base.Frame) -> base.Frame:
        """Return the answer to a method. Raises SourceError."""
        return await self.answered(self.question(question), ANSWER)

    def _beat(self, seconds: float) -> None:
        if self.full.is_set():
            self._heard_at = asyncio.get_running_loop().time()  # signs of life wait in the socket
        super()._beat(seconds)

    def on_connection(self, frame: base.Frame) -> None:
        """Take a method of the connection. A server that blocks publishers has nothing against consumers."""
        if not isinstance(frame, commands.Connection.Blocked | commands.Connection.Unblocked):
            super().on_connection(frame)

    async def give_back(self) -> None:
        """Close the channel, so that the server has everything again that it sent, and open it anew.

        It is read to its end meanwhile: a server whose connection takes nothing ends it after half a minute, and may
        throw messages away that come back too often.
        """
        self._drops, self._deliver = True, None
        closed = self.question(commands.Channel.Close(200, "", 0, 0))
        self.release(self.records)
        self.records.clear()
        await self.answered(closed, 6 * ANSWER)
        await self.ask(commands.Channel.Open())

    def on_channel(self, frame: Frame) -> None:
        """Take deliveries, and answers to questions."""
        if self._drops and isinstance(frame, commands.Basic.Deliver | header.ContentHeader | Unread | Piece):
            return
        self._drops = self._drops and not isinstance(frame, commands.Channel.CloseOk)
        if self._deliver is not None:
            self._delivered(self._deliver, frame)
        elif isinstance(frame, commands.Basic.Deliver):
            self._deliver, self._head, self._parts = frame, None, []
        elif isinstance(frame, commands.Channel.Close):
            self.write(method(commands.Channel.CloseOk()))
            self.fail(UnknownError(f"{self.peer} closed the channel: {said(frame)}"))
        elif isinstance(frame, commands.Basic.Cancel):
            self.fail(UnknownError(f"{self.peer} says that the queue is gone"))
        elif isinstance(frame, base.Frame) and self._asked:
            answer = self._asked.popleft()
            if not answer.done():
                answer.set_result(frame)
        else:
            raise CodecError("a frame has no place here")

    def _delivered(self, deliver: commands.Basic.Deliver, frame: Frame) -> None:
        """Take the parts of a message."""
        if isinstance(frame, header.ContentHeader | Unread) and self._head is None and frame.body_size <= _LONGEST:
            self._head, self._left = frame, frame.body_size
        elif isinstance(frame, Piece) and self._head is not None and len(frame.content) <= self._left:
            self._parts.append(frame.content)
            self._left -= len(frame.content)
        else:
            raise CodecError("a message is not complete, or too long")
        if self._head is not None and not self._left:
            self.records.append(_record(deliver, self._head, b"".join(self._parts)))
            self._deliver, self._parts = None, []
            self.hold(self.records[-1])
            self.came.set()

    def fail(self, error: Exception) -> None:
        """Nothing more comes from this connection."""
        super().fail(error)
        self.came.set()

    @property
    def lost(self) -> Exception | None:
        """Why nothing more comes."""
        return self._lost

    # A consumer publishes nothing.

    def ready(self, frame_max: int) -> None:
        """The channel is open."""

    def began(self, left: float) -> None:
        """Never called."""

    def encode(self, messages: Any, batch: Outgoing) -> list[bytes]:  # noqa: ARG002 # never called
        """Never called."""
        found: list[Message] = list(messages)
        assert not found
        return []


class AmqpSource(Source):
    """One queue; its name is its only partition."""

    has_positions = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._queue: str = self.config["queue"]
        self._reader: AmqpReader | None = None
        self._out: list[Record] = []  # records of the last batch, until they are acknowledged
        self._counting: asyncio.Future[base.Frame] | None = None  # a question for the length of the queue, under way
        self._counted = 0  # its last answer
        self._ahead = min(65535, int(self.config.get("batch") or AHEAD))  # messages that the server may send ahead

    async def open(self, positions: Positions) -> None:  # noqa: ARG002 # there are none
        """Connect and consume. An exclusive consumer keeps the order: a second process waits until it is gone."""
        session = await dialled(AmqpReader, self.config, (target(self.config),), self.surroundings, late_tls=False)
        assert isinstance(session, AmqpReader)
        self._reader = session
        await self._consume(session)

    async def _consume(self, session: AmqpReader) -> None:
        await session.ask(commands.Basic.Qos(0, self._ahead, False))
        exclusive = self.config.get("exclusive") is not False
        consume = commands.Basic.Consume(0, self._queue, "menzil", False, False, exclusive, False, {})
        answer = await session.ask(consume)
        if not isinstance(answer, commands.Basic.ConsumeOk):
            raise SourceError(f"{session.peer} answered basic.consume with something else")

    async def read(self, limit: int, seconds: float) -> Batch | None:
        """Return what came, as soon as something did."""
        reader = self._connected
        if reader.full.is_set() and self._ahead > 1 and reader.is_open:
            self._ahead = max(1, min(self._ahead // 2, len(reader.records) // 2))  # so many fit in any case, or fewer
            await reader.give_back()
            await self._consume(reader)
        if not reader.records:
            reader.came.clear()
            if reader.lost is None:
                try:
                    async with asyncio.timeout(seconds):
                        await reader.came.wait()
                except TimeoutError:
                    return None
        if not reader.is_open:
            # Records that were not acknowledged come again: those that are here would come twice.
            raise SourceError(str(reader.lost or f"The connection to {reader.peer} is closed"))
        self._out = [reader.records.popleft() for _ in range(min(limit, len(reader.records)))]
        return Batch(self._queue, None, None, list(self._out)) if self._out else None

    async def acknowledge(self, batch: Batch) -> None:
        """Tell the server that it may forget these. Batches are acknowledged in their order."""
        self._out = []
        if batch.records:
            self._connected.write(method(commands.Basic.Ack(batch.records[-1].token, True)))
            self._connected.release(batch.records)

    async def seek(self, partition: str, position: str | None) -> None:  # noqa: ARG002 # there is one
        """Read the last batch again: it was not taken."""
        self._connected.records.extendleft(reversed(self._out))
        self._out = []

    async def lags(self) -> dict[str, int]:
        """Count what waits in the queue and here. While nothing is read, the last answer must do."""
        reader = self._connected
        if not reader.is_open:
            raise SourceError(str(reader.lost or f"The connection to {reader.peer} is closed"))
        if self._counting is None:
            declare = commands.Queue.Declare(0, self._queue, True, False, False, False, False, {})
            self._counting = reader.question(declare)
            self._counting.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
            reader.waiting.add(self._counting)  # it fails with the connection
        counting, full = self._counting, asyncio.create_task(reader.full.wait())
        waits: list[asyncio.Future[Any]] = [counting, full]
        try:
            async with asyncio.timeout(ANSWER):
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            reader.abort()
            raise SourceError(f"No answer from {reader.peer} within {ANSWER:g} s") from None
        finally:
            full.cancel()
        if counting.done():
            self._counting = None
            reader.waiting.discard(counting)
            answer = counting.result()
            self._counted = (isinstance(answer, commands.Queue.DeclareOk) and answer.message_count) or 0
        return {self._queue: self._counted + len(reader.records)}

    async def close(self) -> None:
        """Hang up. The server delivers again what was not acknowledged."""
        if self._reader is not None:
            self._reader.abort()

    @property
    def _connected(self) -> AmqpReader:
        if self._reader is None:
            raise SourceError("The source is not open")
        return self._reader


def _record(deliver: commands.Basic.Deliver, head: header.ContentHeader | Unread, body: bytes) -> Record:
    if isinstance(head, Unread):  # one that the server would deliver again and again
        fault = "The properties of the message cannot be read: a text in them is not UTF-8, or a time is out of range."
        return Record(body, subject=deliver.routing_key, fault=fault, token=deliver.delivery_tag)
    properties = head.properties
    headers = [(_name(name), _text(value)) for name, value in (properties.headers or {}).items()]
    return Record(
        body,
        headers=headers,
        id=properties.message_id or None,
        type=properties.message_type or None,
        content_type=properties.content_type or None,
        correlation_id=properties.correlation_id or None,
        subject=deliver.routing_key,
        token=deliver.delivery_tag,
    )


def _name(name: str) -> str:
    for prefix in _EVENTS:
        if name.startswith(prefix):
            return f"ce-{name.removeprefix(prefix)}"
    return name


def _text(value: object) -> str | bytes | None:
    """Return a value of a headers table as text; None for lists and tables, which no header can carry."""
    match value:
        case bool():
            return "true" if value else "false"
        case str() | bytes():
            return value
        case bytearray():
            return bytes(value)
        case datetime():
            return value.isoformat()
        case int() | float():
            return str(value)
        case _:
            return None
