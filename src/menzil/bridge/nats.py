"""The source `nats`: a stream of JetStream, read in its order from the stored sequence by a consumer without a name.

A position is the sequence of the last message that was taken, and behind # when the stream was made: one that was
deleted and made again has the same sequences for other messages. The consumer is made anew with each connection and
needs no acknowledgements. It numbers what it delivers, so a message that got lost on the way is noticed; a jump in the
sequences of the stream is what the stream has removed.

Messages of other subjects are jumps, too. With a filter a position therefore has, behind ~, the sequence up to which
the stream held nothing more for us. Reading never begins there: the number only tells what may have been removed.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any

from menzil.bridge.asking import Asking, dialled
from menzil.bridge.source import Batch, Positions, Record, Source, SourceError
from menzil.deliver.broker.plan import Plan
from menzil.deliver.guard import read_server
from menzil.deliver.nats.protocol import PORT
from menzil.deliver.nats.reader import Arrival, Reader
from menzil.deliver.nats.session import NatsSession

_LONGEST = 128 * 1024 * 1024  # bytes of one message; servers take 64 MiB at most
_ANSWER = 10.0
#: Bytes of one pull. A message alone may be longer.
_PULL_BYTES = 16 * 1024 * 1024
#: Seconds between two looks at how far the stream has nothing more for us.
_LOOKS = 5.0


class NatsReader(Asking, NatsSession):
    """A connection that asks JetStream, and collects what a consumer delivers."""

    def __init__(self, plan: Plan, host: str, peer: str, sock: socket.socket) -> None:
        super().__init__(plan, host, peer, sock)
        self._reader = Reader(_LONGEST)
        self._asked: dict[bytes, asyncio.Future[Arrival]] = {}
        self.arrived: deque[Arrival] = deque()
        self.came = asyncio.Event()  # something arrived, or the pull is over
        self.pulled = 0  # messages that the pull under way may still bring
        self.pull_ends = 0.0
        self._pull_inbox = b""  # where the end of that pull is told; questions have inboxes of their own

    async def ask(self, subject: str, question: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer of JetStream. Raises SourceError."""
        self._number += 1
        inbox = f"{self._inbox}.{self._number}"
        answer: asyncio.Future[Arrival] = asyncio.get_running_loop().create_future()
        self._asked[inbox.encode()] = answer
        try:
            self._publish(subject, inbox, question)
            arrival = await self.answered(answer, _ANSWER)
        finally:
            del self._asked[inbox.encode()]
        if arrival.head.startswith(b"NATS/1.0 503"):
            raise SourceError(f"{self.peer} has no JetStream, or not yet")
        try:
            found: dict[str, Any] = json.loads(arrival.body)
            error = found.get("error")
        except (ValueError, AttributeError):
            raise SourceError(f"{self.peer} answered with something else than JSON") from None
        if error:
            raise SourceError(f"{self.peer} said: {error.get('description')} ({error.get('err_code')})")
        return found

    def pull(self, stream: str, consumer: str, count: int, seconds: float) -> None:
        """Ask for messages, which come by themselves."""
        self._number += 1
        most = max(_PULL_BYTES, 2 * int(self._info.get("max_payload") or 0))
        wish = {"batch": count, "expires": int(seconds * 1e9), "max_bytes": most}
        inbox = f"{self._inbox}.{self._number}"
        self._publish(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", inbox, wish)
        self._pull_inbox = inbox.encode()
        self.pulled, self.pull_ends = count, asyncio.get_running_loop().time() + seconds

    def forget_pull(self) -> None:
        """Nothing that the last pull brings or says counts any more."""
        self.arrived.clear()
        self.pulled, self._pull_inbox = 0, b""

    def _publish(self, subject: str, inbox: str, question: dict[str, Any] | None) -> None:
        body = json.dumps(question).encode() if question is not None else b""
        self.write(b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), inbox.encode(), len(body), body))

    def _arrived(self, arrival: Arrival) -> None:
        answer = self._asked.get(arrival.subject)
        if answer is not None:
            if not answer.done():
                answer.set_result(arrival)
        elif arrival.reply.startswith(b"$JS.ACK."):
            self.arrived.append(arrival)
            self.pulled -= 1
            self.came.set()
        elif arrival.subject == self._pull_inbox:
            self._told(arrival.head)

    def _told(self, head: bytes) -> None:
        """A pull ended with a status in place of a message."""
        status = head[9:12]
        self.pulled = 0
        self.came.set()
        is_usual = status in (b"404", b"408") or b"MaxBytes" in head or b"Batch Completed" in head
        if not is_usual and status != b"100":
            said = head.split(b"\r\n", 1)[0][9:].decode("utf-8", "replace")
            self.fail(SourceError(f"{self.peer} ended the delivery: {said}"))


class NatsSource(Source):
    """One stream; its name is its only partition."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._stream: str = self.config["stream"]
        self._filter: str | None = self.config.get("subject")
        self._reader: NatsReader | None = None
        self._consumer = ""
        self._at = "0"  # the position in the words of the database
        self._made = ""  # when the stream was made
        self._last = 0  # the sequence in the stream that was read last
        self._delivered = 0  # the number that the consumer gave it
        self._lost = 0  # removed by the stream, and not said yet
        self._passed = 0  # the sequence up to which a filtered stream had nothing more for us
        self._looked_at = 0.0

    async def open(self, positions: Positions) -> None:
        """Connect, and make a consumer behind the stored position."""
        targets = tuple(read_server(server, PORT) for server in self.config["servers"])
        config = {**self.config, "subject": self._filter or ">"}
        session = await dialled(NatsReader, config, targets, self.surroundings, late_tls=True)
        assert isinstance(session, NatsReader)
        self._reader = session
        state = await self._state()
        stored = await positions(self._stream)
        if stored is None:
            start = self.config["start"]
            words = {"earliest": max(0, state["first_seq"] - 1), "latest": state["last_seq"]}
            start = self._position(words[start] if start in words else _sequence(start))
            stored = await positions(self._stream, start) or start
        await self.seek(self._stream, stored)

    async def seek(self, partition: str, position: str | None) -> None:  # noqa: ARG002 # there is one
        """Make a consumer that begins behind this position."""
        reader, self._at, self._delivered, self._lost = self._connected, position or "0", 0, 0
        self._last, self._passed = _sequence(self._at), _passed(self._at)
        then = self._at.partition("#")[2]  # a position that people gave has none
        state = await self._state()
        if then and then != self._made:
            raise SourceError(
                f"The stream {self._stream!r} was made anew since the position {self._last} was stored. "
                "Seek to where the bridge is to go on."
            )
        if state["last_seq"] < self._last:
            raise SourceError(
                f"The stream {self._stream!r} ends at {state['last_seq']}, before the stored position {self._last}: "
                "it was made anew. Seek to where the bridge is to go on."
            )
        if self._consumer:
            await self._forget()
        wish: dict[str, Any] = {
            "deliver_policy": "by_start_sequence", "opt_start_seq": self._last + 1, "ack_policy": "none",
            "replay_policy": "instant", "mem_storage": True, "num_replicas": 1, "inactive_threshold": 60 * 10**9,
        }  # fmt: skip
        if self._filter:
            wish["filter_subject"] = self._filter
            self._notice(state["first_seq"])
        question = {"stream_name": self._stream, "config": wish}
        made = await reader.ask(f"$JS.API.CONSUMER.CREATE.{self._stream}", question)
        self._consumer = made["name"]
        self._looked_at = 0.0
        reader.forget_pull()

    async def _forget(self) -> None:
        """What the old consumer still delivers must not be taken for what the new one does."""
        reader, consumer, self._consumer = self._connected, self._consumer, ""
        await reader.ask(f"$JS.API.CONSUMER.DELETE.{self._stream}.{consumer}")

    def _notice(self, first: int) -> None:
        """Between the position and the first message of the stream there may have been messages that we wanted."""
        self._lost = max(self._lost, first - max(self._last, self._passed) - 1)

    async def read(self, limit: int, seconds: float) -> Batch | None:
        """Return what has arrived, and let the next messages come meanwhile."""
        reader, loop = self._connected, asyncio.get_running_loop()
        ends = loop.time() + seconds
        while not reader.arrived:
            if not reader.is_open:
                raise SourceError(f"The connection to {reader.peer} is closed")
            left = ends - loop.time()
            if left <= 0 and not reader.pulled:
                return await self._look() if self._filter else None
            if not reader.pulled:
                reader.pull(self._stream, self._consumer, limit, max(0.1, left))
            if loop.time() > reader.pull_ends + _ANSWER:
                raise SourceError(f"No answer from {reader.peer} within {_ANSWER:g} s")
            reader.came.clear()
            try:
                async with asyncio.timeout(1):
                    await reader.came.wait()
            except TimeoutError:
                continue
        begin = self._at
        records: list[Record] = []
        lost, self._lost = self._lost, 0
        while reader.arrived and len(records) < limit:
            arrival = reader.arrived.popleft()
            sequence, delivered = _numbers(arrival.reply)
            if delivered != self._delivered + 1:
                raise SourceError(f"{reader.peer} left out a message: {self._delivered + 1} of the delivery")
            if not self._filter:
                lost += sequence - self._last - 1
            self._last, self._delivered = sequence, delivered
            records.append(_record(arrival, sequence))
        if not reader.pulled and len(reader.arrived) < limit:
            reader.pull(self._stream, self._consumer, limit, 1.0)
        self._at = self._position(self._last)
        return Batch(self._stream, begin, self._at, records, lost)

    async def _look(self) -> Batch | None:
        """Note how far the stream has nothing more for us, as a batch without records."""
        reader, now = self._connected, asyncio.get_running_loop().time()
        if self._looked_at and now < self._looked_at + _LOOKS:
            return None
        self._looked_at = now
        last = (await self._state())["last_seq"]  # asked first: what is pending is then counted up to here at least
        about = await reader.ask(f"$JS.API.CONSUMER.INFO.{self._stream}.{self._consumer}")
        is_under_way = (about.get("delivered") or {}).get("consumer_seq") != self._delivered
        if is_under_way or about.get("num_pending") or last <= max(self._last, self._passed):
            return None
        begin, lost, self._lost, self._passed = self._at, self._lost, 0, last
        self._at = self._position(self._last)
        return Batch(self._stream, begin, self._at, [], lost)

    async def lags(self) -> dict[str, int]:
        """Ask the consumer what it has not delivered yet."""
        reader = self._connected
        about = await reader.ask(f"$JS.API.CONSUMER.INFO.{self._stream}.{self._consumer}")
        return {self._stream: int(about.get("num_pending") or 0) + len(reader.arrived)}

    async def ends(self) -> dict[str, str]:
        """The last sequence. With a filter, reading goes on until nothing more is there up to it."""
        return {self._stream: str((await self._state())["last_seq"])}

    def is_behind(self, position: str | None, end: str) -> bool:
        """Compare two sequences."""
        return position is None or max(_sequence(position), _passed(position)) < _sequence(end)

    async def close(self) -> None:
        """Hang up; the server forgets the consumer after a minute."""
        if self._reader is not None:
            self._reader.abort()

    @property
    def _connected(self) -> NatsReader:
        if self._reader is None:
            raise SourceError("The source is not open")
        return self._reader

    async def _state(self) -> dict[str, int]:
        found = await self._connected.ask(f"$JS.API.STREAM.INFO.{self._stream}")
        self._made = _moment(found.get("created"))
        state: dict[str, int] = found["state"]
        return state

    def _position(self, sequence: int) -> str:
        passed = f"~{self._passed}" if self._passed > sequence else ""
        return f"{sequence}{passed}#{self._made}" if self._made else f"{sequence}{passed}"


def _sequence(position: str) -> int:
    """Return the sequence of a position; that of a start that is a word is the first."""
    number = position.partition("#")[0].partition("~")[0]
    return int(number) if number.isdecimal() else 0


def _passed(position: str) -> int:
    """Return the sequence up to which the stream had nothing more, where a position has it."""
    number = position.partition("#")[0].partition("~")[2]
    return int(number) if number.isdecimal() else 0


def _moment(text: object) -> str:
    """Return a time of the server in microseconds since 1970: servers may write it in different ways."""
    try:
        return str((datetime.fromisoformat(str(text)) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))
    except (TypeError, ValueError):
        return ""  # then only a stream that ends too early is noticed


def _numbers(reply: bytes) -> tuple[int, int]:
    """Read the sequence in the stream and that of the consumer: $JS.ACK.[domain.account.]stream.consumer.tries.…"""
    words = reply.split(b".")
    place = 5 if len(words) == 9 else 7
    try:
        return int(words[place]), int(words[place + 1])
    except (IndexError, ValueError):
        raise SourceError("A message came without its sequence") from None


def _record(arrival: Arrival, sequence: int) -> Record:
    headers = []
    for line in arrival.head.split(b"\r\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            headers.append((name.decode("utf-8", "replace"), value.strip()))
    subject = arrival.subject.decode("utf-8", "backslashreplace")
    return Record(arrival.body, str(sequence), headers=headers, subject=subject)
