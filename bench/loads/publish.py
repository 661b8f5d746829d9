"""Publishing to brokers, batch after batch with every acknowledgement waited for: by menzil's protocols, and by the
loop that most people write with the usual library."""

from __future__ import annotations

import asyncio
import importlib
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from bench import loops
from bench.crew import Step
from bench.payloads import text
from menzil.deliver.protocol import Batching, Endpoint, Protocol, Surroundings
from menzil.deliver.registry import Protocols
from menzil.model.message import Message
from menzil.model.outcome import Complete
from menzil.model.wire import json_loads

SIZE = 500  # messages of a batch
KEYS = 20
_EPOCH = 830_000_000_000_000  # microseconds: when these messages were sent
_numbers = itertools.count(1)
_BODIES = [b"\x01" + text(number).encode() for number in range(SIZE)]  # a byte for the version of jsonb comes first

#: Delivers the messages, or raises.
Publish = Callable[[Sequence[Message]], Awaitable[None]]


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=loops.factory())


def batch(count: int = SIZE) -> list[Message]:
    """Messages as a worker has them: rows of message_dequeue, not decoded yet."""
    made = []
    for _ in range(count):
        number = next(_numbers)
        body, sent = _BODIES[number % SIZE], (_EPOCH + number).to_bytes(8, "big", signed=True)
        key, nothing = f"k{number % KEYS}", (None, None, None)
        row: Any = (number, "bench", None, body, None, 1, *nothing, key, 0, 0, sent, *nothing, None)
        made.append(Message.from_row(row, json_loads))
    return made


def _step(publish: Publish) -> Step:
    async def round() -> int:
        await publish(batch())
        return SIZE

    return lambda: _runner().run(round())


def adapter(_dsn: str, kind: str, config: dict[str, Any], **_: object) -> Step:
    """All that a worker does for a batch: from messages to outcomes."""
    settings = {"broker_allowed_networks": "127.0.0.0/8"}
    endpoint = Endpoint(1, "bench", kind, config, datetime.now(UTC))

    async def make() -> Protocol:
        return Protocols(Surroundings(settings, "bench")).get(kind)

    protocol = _runner().run(make())
    assert isinstance(protocol, Batching)

    async def publish(messages: Sequence[Message]) -> None:
        found = await protocol.deliver_many(messages, endpoint)
        wrong = next((each for each in found if not isinstance(each, Complete)), None)
        if wrong is not None or len(found) != len(messages):
            raise RuntimeError(f"{kind}: {wrong}")

    return _step(publish)


def bare(_dsn: str, kind: str, config: dict[str, Any], **_: object) -> Step:
    """The loop that most people write: the payload alone, without headers, ids or outcomes."""
    return _step(_runner().run(_BARE[kind](config)))


async def _kafka(config: dict[str, Any]) -> Publish:
    library: Any = importlib.import_module("confluent_kafka")
    servers = ",".join(config["servers"])
    producer = library.Producer(
        {"bootstrap.servers": servers, "acks": "all", "enable.idempotence": True, "linger.ms": 2,
         "compression.type": "lz4", "log_level": 0}
    )  # fmt: skip

    async def publish(messages: Sequence[Message]) -> None:
        errors: list[Any] = []
        for each in messages:
            producer.produce(
                config["topic"], each.payload_json, each.ordering_key, on_delivery=lambda error, _: errors.append(error)
            )
        producer.flush()
        if len(errors) != len(messages) or any(errors):
            raise RuntimeError("Kafka refused a message.")

    return publish


async def _redis(config: dict[str, Any]) -> Publish:
    library: Any = importlib.import_module("redis.asyncio")
    client = library.Redis(port=config["port"])

    async def publish(messages: Sequence[Message]) -> None:
        async with client.pipeline(transaction=False) as pipe:
            for each in messages:
                pipe.xadd(config["stream"], {"payload": each.payload_json})
            await pipe.execute()

    return publish


async def _nats(config: dict[str, Any]) -> Publish:
    library: Any = importlib.import_module("nats")
    client = await library.connect(f"nats://{config['servers'][0]}")
    stream = client.jetstream()

    async def publish(messages: Sequence[Message]) -> None:
        await asyncio.gather(*[await stream.publish_async(config["subject"], each.payload_json) for each in messages])

    return publish


async def _amqp(config: dict[str, Any]) -> Publish:
    library: Any = importlib.import_module("aiormq")
    address = f"amqp://guest:guest@{config['host']}:{config['port']}/"
    channel = await (await library.connect(address)).channel(publisher_confirms=True)
    properties = library.spec.Basic.Properties(delivery_mode=2)

    async def publish(messages: Sequence[Message]) -> None:
        await asyncio.gather(
            *[
                channel.basic_publish(
                    each.payload_json,
                    exchange=config["exchange"],
                    routing_key=config["routing_key"],
                    properties=properties,
                )
                for each in messages
            ]
        )

    return publish


async def _mqtt(config: dict[str, Any]) -> Publish:
    library: Any = importlib.import_module("paho.mqtt.client")
    client = library.Client(library.CallbackAPIVersion.VERSION2)
    client.max_inflight_messages_set(SIZE)
    client.connect(config["host"], config["port"])
    client.loop_start()

    async def publish(messages: Sequence[Message]) -> None:
        for info in [client.publish(config["topic"], each.payload_json, qos=1) for each in messages]:
            info.wait_for_publish(60)

    return publish


_BARE: dict[str, Callable[[dict[str, Any]], Coroutine[Any, Any, Publish]]] = {
    "amqp": _amqp, "kafka": _kafka, "mqtt": _mqtt, "nats": _nats, "redis": _redis,
}  # fmt: skip
