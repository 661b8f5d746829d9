"""The library paho-mqtt, which shares no code with the deliverer: subscribes, and reads what a topic got."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.brokers.stage import fresh

PATIENCE = 60.0
END = b"the end"


class Subscriber:
    """One session that the server keeps while it is away. Made before the first message, asked after the last."""

    def __init__(self, port: int, topic: str, version: str, **login: str) -> None:
        self.port, self.topic, self.five, self.login = port, topic, version == "5", login
        self._name = fresh("reader")
        with self._connected():
            pass

    @contextmanager
    def _connected(self) -> Iterator[tuple[paho.Client, queue.Queue[Any]]]:
        found: queue.Queue[Any] = queue.Queue()
        ready = threading.Event()
        kind = paho.MQTTv5 if self.five else paho.MQTTv311
        session: dict[str, Any] = {} if self.five else {"clean_session": False}
        client = paho.Client(CallbackAPIVersion.VERSION2, self._name, protocol=kind, **session)
        if self.login:
            client.username_pw_set(**self.login)
        client.on_message = lambda _client, _data, message: found.put(message)
        client.on_connect = lambda one, *_: one.subscribe(self.topic, 2)
        client.on_subscribe = lambda *_: ready.set()
        options: dict[str, Any] = {}
        if self.five:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = 3600
            options = {"clean_start": False, "properties": properties}
        client.connect("127.0.0.1", self.port, **options)
        client.loop_start()
        try:
            assert ready.wait(PATIENCE), "paho did not subscribe"
            yield client, found
        finally:
            client.disconnect()
            client.loop_stop()

    def read(self, qos: int = 1) -> list[Any]:
        """Return all messages since the last look, in their order."""
        with self._connected() as (client, found):
            client.publish(self.topic, END, qos).wait_for_publish(PATIENCE)
            messages = []
            while (message := found.get(timeout=PATIENCE)).payload != END:
                messages.append(message)
            return messages

    async def all(self, qos: int = 1) -> list[Any]:
        """The same without holding up the event loop."""
        return await asyncio.to_thread(self.read, qos)


def user_properties(message: Any) -> dict[str, str]:
    """The pairs of names and values of a message of MQTT 5."""
    return dict(getattr(message.properties, "UserProperty", []))
