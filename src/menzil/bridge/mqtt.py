"""The source `mqtt`: a session that the server keeps, and messages that are acknowledged when they are committed.

MQTT has no positions. The server sends again what was not acknowledged; a message of MQTT 5 with the user property
menzil-id is then recognised by its idempotency key, and any other may become two messages. The session begins when the
bridge first runs: what was published before it is not seen.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from menzil.bridge.asking import Asking, dialled
from menzil.bridge.holding import Holding
from menzil.bridge.log import say
from menzil.bridge.source import Batch, Positions, Record, Source, SourceError
from menzil.deliver.broker.batch import Batch as Outgoing
from menzil.deliver.broker.errors import UnknownError
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.session import CodecError
from menzil.deliver.guard import RefusedUrlError
from menzil.deliver.mqtt import packet
from menzil.deliver.mqtt.link import Link
from menzil.deliver.mqtt.protocol import target
from menzil.deliver.mqtt.reasons import TAKEN_OVER, named
from menzil.deliver.mqtt.slots import Slots
from menzil.model.message import Message

WEEK = 604_800
#: Seconds for an answer that the server gives at once.
ANSWER = 10.0
_PUBLISH, _SUBACK = 3, 9
_EXPECTED = packet.EXPECTED | {0x90} | {0x30 | flags for flags in range(16)}


class Name(Slots):
    """The client id of a bridge: the same in every process and after every restart, or the session would be another."""

    def client_id(self, slot: int) -> str:  # noqa: ARG002 # there is one
        """Return the id."""
        return self.beginning


class MqttReader(Asking, Holding, Link):
    """A connection that subscribes."""

    def __init__(self, plan: Plan, host: str, peer: str, sock: socket.socket, *, client_id: str) -> None:
        super().__init__(plan, host, peer, sock, slots=Name(client_id), slot=0)
        config = plan.config
        self._reader = packet.Reader(_EXPECTED, packet.LARGEST)
        seconds = int(config.get("session_seconds") or WEEK)
        self.kept = struct.pack(">BIBH", 0x11, seconds, packet.RECEIVE_MAXIMUM, int(config.get("inflight") or 1000))
        self._filter: str = config["topic"]
        self.was_kept = False  # the server had the session
        self._subscribed: asyncio.Future[bytes] | None = None
        self.came: deque[Record] = deque()
        self.arrival = asyncio.Event()

    async def subscribe(self) -> None:
        """Subscribe; a session that was kept has done so, and takes it again. Raises SourceError."""
        self._subscribed = asyncio.get_running_loop().create_future()
        # QoS 1. Retained messages come when the subscription is new, and not at every restart.
        options = 0x01 | (0x10 if self.five else 0)
        parts = [b"\x00\x01", *([b"\x00"] if self.five else []), packet.data(self._filter.encode()), bytes((options,))]
        self.write(packet.packet(0x82, *parts))
        answer = await self.answered(self._subscribed, ANSWER)
        code = answer[-1] if len(answer) > 2 else 0x80
        if code == 0:
            raise SourceError(f"{self.peer} gives {self._filter!r} with QoS 0 only: messages could get lost")
        if code >= 0x80:
            raise SourceError(f"{self.peer} refused to subscribe to {self._filter!r}: {named(code)}")

    def _welcome(self, body: bytes) -> str | None:
        self.was_kept = bool(body[0] & 1)
        return super()._welcome(body)

    def take(self, head: int, body: bytes) -> None:
        """Take a packet after the greeting."""
        kind = head >> 4
        if kind == _PUBLISH:
            self._take_message(head, body)
        elif kind == _SUBACK and self._subscribed is not None and not self._subscribed.done():
            self._subscribed.set_result(body)
        elif kind == packet.GOODBYE:
            code = body[0] if body else 0
            said = f"{self.peer} ended the connection: {named(code)}"
            if code == TAKEN_OVER:
                said += ". Does the bridge run twice? Another client has connected with its client id."
            self.fail(UnknownError(said))
        elif kind != packet.PINGRESP:
            raise CodecError("a packet has a type that is not expected")

    def _take_message(self, head: int, body: bytes) -> None:
        qos, retained = head >> 1 & 3, bool(head & 1)
        if qos > 1:
            raise CodecError("a message has a QoS that was not subscribed to")
        try:
            record, packet_id = self._record(body, qos)
        except (struct.error, UnicodeDecodeError):
            raise CodecError("a message is cut off") from None
        stale = retained and self.was_kept and not self.five  # 3.1.1 sends it anew at every subscription
        if stale or not matches(self._filter, record.subject or ""):
            if qos:
                self.write(packet.packet(0x40, packet_id.to_bytes(2, "big")))
            return
        record.token = packet_id if qos else None
        self.came.append(record)
        self.hold(record)
        self.arrival.set()

    def _ping(self) -> None:
        self._has_heard |= self.full.is_set()  # its answers wait in the socket
        super()._ping()

    def _record(self, body: bytes, qos: int) -> tuple[Record, int]:
        (long,) = struct.unpack_from(">H", body, 0)
        if 2 + long > len(body):
            raise CodecError("a message is cut off")
        topic, at, packet_id = body[2 : 2 + long].decode(), 2 + long, 0
        if qos:
            (packet_id,) = struct.unpack_from(">H", body, at)
            at += 2
        if not self.five:
            return Record(body[at:], subject=topic), packet_id
        told, pairs, at = packet.told(body, at)
        correlation, kind = told.get(packet.CORRELATION), told.get(packet.CONTENT_TYPE)
        return Record(
            body[at:],
            headers=pairs,
            content_type=kind if isinstance(kind, str) else None,
            correlation_id=correlation if isinstance(correlation, str) else None,
            subject=topic,
        ), packet_id

    @property
    def is_unsure(self) -> bool:
        """Nothing is written that could arrive twice."""
        return False

    def fail(self, error: Exception) -> None:
        """Wake who waits for a message: none will come."""
        super().fail(error)
        self.arrival.set()

    # A batch goes the other way

    def began(self, left: float) -> None:  # noqa: ARG002
        """Not used: a bridge reads."""
        raise TypeError("A bridge publishes nothing.")

    def encode(self, messages: Sequence[Message], batch: Outgoing) -> Iterator[bytes]:  # noqa: ARG002
        """Not used: a bridge reads."""
        raise TypeError("A bridge publishes nothing.")


class MqttSource(Source):
    """One filter of topics, which is the only partition."""

    has_positions = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._filter: str = self.config["topic"]
        self._connection: MqttReader | None = None
        self._handed_out: list[Record] = []  # read, and not yet acknowledged

    async def open(self, positions: Positions) -> None:  # noqa: ARG002 # there are none
        """Connect to the session, and subscribe."""
        client_id = self.config.get("client_id") or f"menzil-bridge-{self.spec.name}"

        def make(plan: Plan, host: str, peer: str, sock: socket.socket) -> MqttReader:
            return MqttReader(plan, host, peer, sock, client_id=client_id)

        try:
            where = target(self.config)
        except RefusedUrlError as error:
            raise SourceError(error.reason) from None
        session = await dialled(make, self.config, (where,), self.surroundings, late_tls=False)
        assert isinstance(session, MqttReader)
        self._connection = session
        if not session.was_kept and self._filter in self.spec.positions:
            # How many were missed is not known. Without this line the gap would go unseen.
            why = "The server kept no session: what was published while no bridge was connected is missing"
            say(logging.WARNING, "gap", bridge=self.spec.name, partition=self._filter, why=why)
        await session.subscribe()

    async def read(self, limit: int, seconds: float) -> Batch | None:
        """Return what has come, or wait for the first message."""
        connection = self._open
        if not connection.came and connection.is_open:  # else no arrival would ever end the wait
            connection.arrival.clear()
            try:
                async with asyncio.timeout(seconds):
                    await connection.arrival.wait()
            except TimeoutError:
                return None
        if not connection.is_open:
            # The server sends again what was not acknowledged: it would come twice. What has QoS 0 never comes again.
            connection.came = deque(record for record in connection.came if record.token is None)
        if not connection.came:
            raise SourceError(str(connection.lost or f"The connection to {connection.peer} is closed"))
        records = [connection.came.popleft() for _ in range(min(limit, len(connection.came)))]
        self._handed_out += records
        return Batch(self._filter, None, None, records)

    async def seek(self, partition: str, position: str | None) -> None:  # noqa: ARG002 # there is one, without positions
        """Hand out again what was not taken."""
        self._open.came.extendleft(reversed(self._handed_out))
        self._handed_out = []

    async def acknowledge(self, batch: Batch) -> None:
        """Tell the server, in the order in which they came. Over a connection that is gone it is told nothing."""
        self._handed_out = []
        ids = [record.token for record in batch.records if record.token is not None]
        self._open.write(b"".join(packet.packet(0x40, id.to_bytes(2, "big")) for id in ids))
        self._open.release(batch.records)

    async def close(self) -> None:
        """Hang up; the server keeps the session."""
        if self._connection is not None:
            self._connection.abort()

    @property
    def _open(self) -> MqttReader:
        if self._connection is None:
            raise SourceError("The source is not open")
        return self._connection


def matches(pattern: str, topic: str) -> bool:
    """Whether a filter takes a topic. One that was changed leaves the old subscription in the session."""
    if pattern.startswith("$share/"):
        pattern = pattern.split("/", 2)[-1]
    wanted, levels = pattern.split("/"), topic.split("/")
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place >= len(levels) or level not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels)
