"""The brokers of the bench, as children of this process: those of the tests, from wheels or unpacked from Debian."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.brokers.kafka.stage import MockCluster
from tests.brokers.servers import NatsServer, Valkey

STREAM, SUBJECT = "BENCH", "bench.>"


@dataclass(frozen=True)
class Place:
    """Where one protocol delivers to."""

    kind: str
    config: dict[str, Any]
    clear: Callable[[], None]  # forget what was published: brokers that keep it in memory get slower
    pid: int | None = None  # of the broker, where its processor time is told

    @property
    def json(self) -> str:
        return json.dumps(self.config)


def _nothing() -> None:
    pass


def redis(stack: ExitStack) -> Place:
    """Valkey with its log on disk every second."""
    library: Any = importlib.import_module("redis")
    server = stack.enter_context(Valkey())
    client = stack.enter_context(library.Redis(port=server.port))
    return Place("redis", {"host": "127.0.0.1", "port": server.port, "stream": "bench"}, client.flushall, server.pid)


def nats(stack: ExitStack) -> Place:
    """JetStream with files."""
    library: Any = importlib.import_module("nats")
    server = stack.enter_context(NatsServer())

    async def stream(*, make: bool) -> None:
        client = await library.connect(f"nats://127.0.0.1:{server.port}")
        try:
            if make:
                await client.jetstream().add_stream(name=STREAM, subjects=[SUBJECT])
            else:
                await client.jetstream().purge_stream(STREAM)
        finally:
            await client.close()

    asyncio.run(stream(make=True))
    config = {"servers": [f"127.0.0.1:{server.port}"], "subject": "bench.orders"}
    return Place("nats", config, lambda: asyncio.run(stream(make=False)), server.pid)


def kafka(stack: ExitStack) -> Place:
    """The mock of librdkafka: no current Kafka can be installed by pip."""
    cluster = stack.enter_context(MockCluster(3))
    return Place("kafka", {"servers": cluster.servers, "topic": cluster.create("bench")}, _nothing)


def amqp(stack: ExitStack) -> Place:
    """RabbitMQ, where its Debian package is installed or unpacked."""
    rabbit: Any = importlib.import_module("tests.brokers.amqp.rabbit")
    _needed("rabbitmq-server", rabbit._scripts())
    library: Any = importlib.import_module("aiormq")
    server = stack.enter_context(rabbit.Rabbit())

    async def queue(*, make: bool) -> None:
        connection = await library.connect(f"amqp://guest:guest@127.0.0.1:{server.port}/")
        channel = await connection.channel()
        await (channel.queue_declare("bench", durable=True) if make else channel.queue_purge("bench"))
        await connection.close()

    asyncio.run(queue(make=True))
    auth = {"type": "plain", "username": "guest", "password": "guest"}
    config = {"host": "127.0.0.1", "port": server.port, "exchange": "", "routing_key": "bench", "auth": auth}
    return Place("amqp", config, lambda: asyncio.run(queue(make=False)))


def mqtt(stack: ExitStack) -> Place:
    """Mosquitto, where its Debian package is installed or unpacked, and else NATS, which speaks MQTT 3.1.1."""
    unpacked: Any = importlib.import_module("tests.brokers.unpacked")
    servers: Any = importlib.import_module("tests.brokers.mqtt.servers")
    is_mosquitto = unpacked.program("mosquitto") is not None
    server = stack.enter_context(servers.Mosquitto() if is_mosquitto else servers.NatsMqtt())
    config = {"host": "127.0.0.1", "port": server.mqtt_port, "topic": "bench"}
    return Place("mqtt", config if is_mosquitto else config | {"version": "3.1.1"}, _nothing)


def _needed(package: str, found: object) -> None:
    if found is None:
        raise ImportError(f"there is no {package}")


EVERY: dict[str, Callable[[ExitStack], Place]] = {
    "kafka": kafka, "redis": redis, "nats": nats, "amqp": amqp, "mqtt": mqtt,
}  # fmt: skip


@contextmanager
def places(*kinds: str, missing: Callable[[str], None]) -> Iterator[dict[str, Place]]:
    """Start these brokers. Those that this machine does not have are told to `missing`, and left out."""
    with ExitStack() as stack:
        found = {}
        for kind in kinds:
            try:
                found[kind] = EVERY[kind](stack)
            except ImportError as error:
                missing(f"{kind} is left out: {error}")
        yield found
