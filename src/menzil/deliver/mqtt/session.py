"""A connection to a server of MQTT. A batch is written as fast as the server lets messages be under way."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from menzil.deliver.broker.batch import Batch
from menzil.deliver.broker.envelope import compose
from menzil.deliver.broker.errors import EndpointError, MessageError, UnknownError, bad_endpoint, bad_message, unknown
from menzil.deliver.broker.overrides import chosen
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.session import CHUNK, CodecError
from menzil.deliver.mqtt import packet
from menzil.deliver.mqtt.link import Link
from menzil.deliver.mqtt.publication import Publications
from menzil.deliver.mqtt.reasons import BLAMES_A_PACKET, MESSAGE, NO_SUBSCRIBERS, NOT_FOUND, TAKEN_OVER, UNSURE, named
from menzil.deliver.mqtt.slots import Slots
from menzil.deliver.mqtt.suspects import Suspects
from menzil.model.message import Message
from menzil.model.outcome import Complete, Defer, Outcome
from menzil.telemetry.tracing import CARRIED

LAST_ID = 65535


class MqttSession(Link):
    """One connection, which has a slot of its endpoint and the client id that belongs to it."""

    def __init__(
        self, plan: Plan, host: str, peer: str, sock: socket.socket, *, slots: Slots, slot: int, suspects: Suspects
    ) -> None:
        super().__init__(plan, host, peer, sock, slots=slots, slot=slot)
        self._suspects = suspects
        self._publications = Publications(plan.config)
        self._qos = self._publications.qos
        self._topic: str = plan.config["topic"]
        self._topics: dict[int, str] = {}  # by position: topics of messages that chose another than the endpoint's
        self._wants_subscribers = plan.config.get("no_subscribers") == "retry"
        self._last_id = 0
        self._under_way: dict[int, int] = {}  # packet id: place in the batch
        self._released: set[int] = set()  # of QoS 2: the server has the message, and was told to pass it on
        self._messages: Sequence[Message] = ()
        self._traces: Mapping[int, Mapping[str, str]] = {}
        self._line: deque[int] = deque()  # places of messages that are not written yet
        self._single: deque[int] = deque()  # the same of those that go alone
        self._wrote = False  # something of this batch
        self._unconfirmed: list[int] = []  # of QoS 0: places that a ping is behind of
        self._confirmed_by = 0  # the number of that ping

    @cached_property
    def _usual(self) -> Complete:
        return self._complete(self._topic, 0)

    def _complete(self, topic: str, code: int) -> Complete:
        said = {"topic": topic, "qos": self._qos}
        return Complete({**said, "reason_code": code} if self.five and self._qos else said)

    def _taken(self, place: int) -> Complete:
        topic = self._topics.get(place)
        return self._usual if topic is None else self._complete(topic, 0)

    # The batch

    def began(self, left: float) -> None:
        """Begin a batch: nothing to do."""

    def encode(self, messages: Sequence[Message], batch: Batch) -> Iterator[bytes]:  # noqa: ARG002
        """Not used: what may be written depends on what was acknowledged."""
        raise TypeError("Messages of MQTT are written one by one.")

    async def publish(self, messages: Sequence[Message], batch: Batch, left: float) -> None:  # noqa: ARG002
        """Write a batch, and wait until it is over. What was not written is handed back, which costs no retry."""
        self.batch = batch
        if self.lost is not None:
            batch.break_off(EndpointError(str(self.lost)))
            return
        self._messages, self._topics, self._wrote = messages, {}, False
        self._traces = CARRIED.get() or {}  # answers of the server come in another context
        worse: list[int] = []
        for place, message in enumerate(messages):
            if not self._qos or message.id not in self._suspects:
                self._line.append(place)
            else:
                (worse if self._suspects.is_worse(message.id) else self._single).append(place)
        self._single.extend(worse)
        try:
            self._pump()
            await batch.over()
        finally:
            if self._wrote:
                for place in (*self._line, *self._single):
                    batch.settle(place, Defer())
            self._line.clear()
            self._single.clear()

    def _pump(self) -> None:
        """Write what may be written now, in one write as far as it is not large."""
        batch = self.batch
        if batch is None or not (self._line or self._single):
            return
        chunk = bytearray()
        while self.flows and self.is_open and (place := self._next()) is not None:
            piece = self._piece(batch, place)
            if piece is None:
                continue
            chunk += piece
            if len(chunk) >= CHUNK:
                self._send(chunk)
                chunk = bytearray()
        if self._unconfirmed and not self._line and not self._confirmed_by:
            # What has QoS 0 is not acknowledged; a server that answers a ping has read all that came before it.
            chunk += packet.PINGREQ
            self.pings_sent += 1
            self._confirmed_by = self.pings_sent
        if chunk:
            self._send(chunk)

    def _send(self, chunk: bytearray) -> None:
        self._wrote = True
        if self.transport is not None:
            self.transport.write(chunk)

    def _next(self) -> int | None:
        """Return the place of the message that may be written next."""
        if self._line:
            return self._line.popleft() if len(self._under_way) < self.room else None
        if self._single and not self._under_way:
            return self._single.popleft()
        return None

    def _piece(self, batch: Batch, place: int) -> bytes | None:
        message, plan = self._messages[place], self.plan
        packet_id = self._free_id() if self._qos else 0
        try:
            envelope = compose(message, plan.headers, plan.events, self._traces.get(message.id))
            topic = chosen(envelope, plan.overrides, "topic", self._topic)
            piece = self._publications.write(envelope, topic, packet_id, self.most, self.peer)
        except (MessageError, UnicodeEncodeError) as error:
            said = str(error) if isinstance(error, MessageError) else "The message has text that is no Unicode."
            batch.settle(place, bad_message(said))
            return None
        if topic != self._topic:
            self._topics[place] = topic
        if self._qos:
            self._last_id = packet_id
            self._under_way[packet_id] = place
        else:
            self._unconfirmed.append(place)
        return piece

    def _free_id(self) -> int:
        found = self._last_id % LAST_ID + 1
        while found in self._under_way:
            found = found % LAST_ID + 1
        return found

    def resume_writing(self) -> None:
        """The kernel takes more."""
        super().resume_writing()
        self._pump()

    # What the server says

    def feed(self, data: bytes) -> None:
        """Read packets, and write what they make room for."""
        super().feed(data)
        self._pump()

    def take(self, head: int, body: bytes) -> None:
        """Take a packet after the greeting."""
        kind = head >> 4
        if kind == packet.PINGRESP:
            if self._confirmed_by and self.pings_got >= self._confirmed_by:
                places, self._unconfirmed, self._confirmed_by = self._unconfirmed, [], 0
                for place in places:
                    self._settle(place, self._taken(place))
            return
        if kind == packet.GOODBYE:
            self._disconnected(body)
            return
        if kind not in (packet.PUBACK, packet.PUBREC, packet.PUBCOMP) or len(body) < 2:
            raise CodecError("a packet has a type that is not expected")
        packet_id = body[0] << 8 | body[1]
        code = body[2] if len(body) > 2 else 0
        if packet_id not in self._under_way:
            # A repeat, or an answer to nothing: it settles nothing.
            if kind == packet.PUBREC:
                self.write(packet.packet(0x62, body[:2], bytes((NOT_FOUND,)) if self.five else b""))
            return
        if (kind == packet.PUBACK) != (self._qos == 1):
            raise CodecError("an acknowledgement is of another QoS")
        if kind == packet.PUBREC and code < 0x80:
            self._released.add(packet_id)
            self.write(packet.packet(0x62, body[:2]))
            return
        if kind == packet.PUBCOMP and packet_id not in self._released:
            raise CodecError("a message is completed that was never received")
        self._released.discard(packet_id)
        place = self._under_way.pop(packet_id)
        self._settle(place, self._verdict(place, code, body))

    def _settle(self, place: int, outcome: Outcome) -> None:
        if isinstance(outcome, Complete):
            self._suspects.acknowledged(self._messages[place].id)
        if self.batch is not None:
            self.batch.settle(place, outcome)

    def _verdict(self, place: int, code: int, body: bytes) -> Outcome:
        if code == 0:
            return self._taken(place)
        topic = self._topics.get(place, self._topic)
        said = f"{self.peer} answered: {named(code, packet.properties(body, 3).get(packet.REASON))}"
        if code < 0x80:
            if code == NO_SUBSCRIBERS and self._wants_subscribers:
                return bad_endpoint(f"No client subscribes to {topic!r}: {said}")
            return self._complete(topic, code)
        if code in MESSAGE:
            return bad_message(said)
        return unknown(said) if code in UNSURE else bad_endpoint(said)

    # The end

    def _disconnected(self, body: bytes) -> None:
        if not self.five:
            raise CodecError("a packet has a type that is not expected")
        code = body[0] if body else 0
        said = f"{self.peer} ended the connection: {named(code, packet.properties(body, 1).get(packet.REASON))}"
        if code == TAKEN_OVER:
            said += ". Another client has connected with the same client id."
        self._blame(said, code)
        self.fail(UnknownError(said))

    def connection_lost(self, exc: Exception | None) -> None:
        """The server has closed the connection, which may be its way to refuse a message."""
        if not self.has_ended:
            self._blame(f"{self.peer} closed the connection twice when it got this message alone", None)
        super().connection_lost(exc)

    def _blame(self, said: str, code: int | None) -> None:
        """Look for the message at which the connection ended. Without a code any of them may be the reason."""
        if self.batch is None or not self._under_way or not (code is None or code in BLAMES_A_PACKET):
            return
        places = list(self._under_way.values())
        ids = [self._messages[place].id for place in places]
        if len(ids) > 1:
            self._suspects.suspect(ids)
        elif code in MESSAGE or self._suspects.was_alone(ids[0]):
            self.batch.settle(places[0], bad_message(said))

    @property
    def is_unsure(self) -> bool:
        """Whether something was written that is not acknowledged."""
        return bool(self._under_way or self._unconfirmed)
