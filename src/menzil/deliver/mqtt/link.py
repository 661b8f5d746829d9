"""A connection of MQTT without its messages: the greeting, what the server can do, pings, and the end."""

from __future__ import annotations

import asyncio
import socket
from abc import abstractmethod

from menzil.deliver.broker.errors import EndpointError, UnknownError
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.session import CodecError, Session
from menzil.deliver.mqtt import packet
from menzil.deliver.mqtt.reasons import REFUSALS, named
from menzil.deliver.mqtt.slots import Slots

#: The part of keepalive_seconds after which a ping follows; a server waits for one and a half of them.
_PART = 0.6


class Link(Session):
    """Speaks for a client id until the connection ends."""

    speaks = "MQTT"

    def __init__(self, plan: Plan, host: str, peer: str, sock: socket.socket, *, slots: Slots, slot: int) -> None:
        super().__init__(plan, host, peer, sock)
        config = plan.config
        self.five = config.get("version", "5") == "5"
        self.room = int(config.get("inflight") or 100)  # messages that may be under way
        self.most = packet.LARGEST + 5  # bytes of a packet that the server takes
        self.pings_sent = self.pings_got = 0
        self.has_ended = False
        self._slots, self._slot = slots, slot
        self.kept: bytes | None = None  # set where the session is to outlive the connection
        self._keepalive = int(config.get("keepalive_seconds") or 30)
        self._reader = packet.Reader()
        self._has_greeted = False
        self._is_known = False  # by its client id
        self._refusal: str | None = None
        self._has_heard = False  # something, since the last ping
        self._timer: asyncio.TimerHandle | None = None

    @abstractmethod
    def take(self, head: int, body: bytes) -> None:
        """Take a packet after the greeting: its first byte and the rest. Raises CodecError."""

    @property
    @abstractmethod
    def is_unsure(self) -> bool:
        """Whether something was written that is not acknowledged."""

    @property
    def flows(self) -> bool:
        """Whether the kernel takes more."""
        return self._flows.is_set()

    @property
    def lost(self) -> Exception | None:
        """Why the connection has ended."""
        return self._lost

    async def greet(self) -> None:
        """Log in, and read what the server can do."""
        auth = self.plan.config.get("auth") or {}
        username, password = auth.get("username"), auth.get("password")
        self.write(
            packet.connect(
                five=self.five,
                client_id=self._slots.client_id(self._slot),
                keepalive=self._keepalive,
                username=username,
                password=password,
                kept=self.kept,
            )
        )
        await self.hear()
        if self._refusal is not None:
            raise EndpointError(f"{self.peer} refused the connection: {self._refusal}")
        self._is_known = True
        self._slots.connected(self._slot)
        self._ping_later()

    def feed(self, data: bytes) -> None:
        """Read packets."""
        if self.has_ended:
            return
        self._has_heard = True
        for head, body in self._reader.feed(data):
            kind = head >> 4
            if not self._has_greeted:
                if kind != packet.CONNACK or len(body) < 2:
                    raise CodecError("it does not begin with CONNACK")
                self._has_greeted = True
                self._refusal = self._welcome(body)
                self.heard()
                continue
            if kind == packet.PINGRESP:
                self.pings_got += 1
            self.take(head, body)
            if self.has_ended:
                return

    def _welcome(self, body: bytes) -> str | None:
        """Read CONNACK; return why the server does not let us in, or cannot do what the endpoint wants."""
        code, config = body[1], self.plan.config
        if not self.five or (code and len(body) == 2 and code < 0x80):
            # A server that does not know MQTT 5 answers in the older way.
            if not code:
                return None
            hint = '. Does it speak MQTT 5? Otherwise set version to "3.1.1"' if code == 1 and self.five else ""
            return f"{REFUSALS.get(code, 'unknown reason')} ({code}){hint}"
        told = packet.properties(body, 2)
        if code:
            return named(code, told.get(packet.REASON))
        self.room = min(self.room, int(told.get(packet.RECEIVE_MAXIMUM) or 65535))
        self.most = min(self.most, int(told.get(packet.MAXIMUM_SIZE) or self.most))
        self._keepalive = int(told.get(packet.KEEPALIVE, self._keepalive))
        if int(config.get("qos", 1)) > int(told.get(packet.MAXIMUM_QOS, 2)):
            return f"it takes no more than QoS {told[packet.MAXIMUM_QOS]}"
        if config.get("retain") and told.get(packet.RETAIN_AVAILABLE) == 0:
            return "it retains no messages"
        return None

    # Pings

    def _ping_later(self) -> None:
        if self._keepalive and not self.has_ended:
            self._has_heard = False
            self._timer = asyncio.get_running_loop().call_later(self._keepalive * _PART, self._ping)

    def _ping(self) -> None:
        if self.pings_sent > self.pings_got and not self._has_heard:
            self.fail(UnknownError(f"{self.peer} did not answer a ping within {self._keepalive * _PART:g} s"))
            return
        self.pings_sent += 1
        self.write(packet.PINGREQ)
        self._ping_later()

    # The end

    def abort(self) -> None:
        """Close at once, and free the client id. A server that waits for nothing is told, so it logs no fault."""
        if self.has_ended:
            super().abort()
            return
        self.has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        if self._is_known:
            self._slots.free(self._slot, unacknowledged=self.is_unsure)
        if self._is_known and self.is_open and not self.is_unsure and self.transport is not None:
            self.is_open = self.keepable = False
            self.transport.write(packet.DISCONNECT)
            self.transport.close()
        else:
            super().abort()
