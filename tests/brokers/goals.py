"""Each broker as a goal of a worker: behind a relay, with the config of an endpoint, and with what the broker got."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.brokers.amqp.readers import channel_of, held, new_queue
from tests.brokers.kafka.stage import MockCluster, header, records
from tests.brokers.mqtt.subscriber import Subscriber
from tests.brokers.relay import Relay
from tests.brokers.stage import entries, fresh, jetstream, stored

#: The fixture with the server of each broker; Kafka is started by its goal.
SERVERS = {"redis": "valkey", "nats": "nats_server", "amqp": "rabbit", "kafka": None, "mqtt": "nats_mqtt"}
#: RabbitMQ takes seconds to start, and Kafka and MQTT to be read.
KINDS = [
    "redis",
    "nats",
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("amqp", "kafka", "mqtt")),
]


@dataclass
class Goal:
    """Where an endpoint delivers to."""

    relay: Relay
    protocol: str
    config: dict[str, Any]
    ids: Callable[[int], Awaitable[list[str]]]  # of the messages that the broker got; at least so many
    drops_repeats: bool = False  # whether the broker knows the ids of messages
    at_once: dict[str, Any] = field(default_factory=dict)  # what a config needs for a batch to leave without answers


@asynccontextmanager
async def goal(kind: str, server: Any) -> AsyncIterator[Goal]:
    async with _GOALS[kind](server) as found:
        yield found


@asynccontextmanager
async def _redis(server: Any) -> AsyncIterator[Goal]:
    stream = fresh("S")
    async with Relay(server.port) as relay, entries(server.port) as client:

        async def ids(_: int) -> list[str]:
            return [found[b"id"].decode() for _, found in await client.xrange(stream)]

        config = {"host": "127.0.0.1", "port": relay.port, "stream": stream, "dedup_seconds": 600}
        yield Goal(relay, "redis", config, ids, drops_repeats=True)


@asynccontextmanager
async def _nats(server: Any) -> AsyncIterator[Goal]:
    stream, subject = fresh("S"), fresh("s")
    async with Relay(server.port) as relay, jetstream(server.port, stream, subject) as context:

        async def ids(_: int) -> list[str]:
            return [found.headers["Nats-Msg-Id"] for found in await stored(context, stream)]

        config = {"servers": [f"127.0.0.1:{relay.port}"], "subject": subject}
        yield Goal(relay, "nats", config, ids, drops_repeats=True)


@asynccontextmanager
async def _amqp(server: Any) -> AsyncIterator[Goal]:
    name, got = fresh("q"), []
    async with channel_of(server.port) as channel, Relay(server.port) as relay:
        queue = await new_queue(channel, name)

        async def ids(_: int) -> list[str]:
            got.extend([one.message_id or "" for one in await held(queue)])
            return list(got)

        yield Goal(relay, "amqp", {"host": "127.0.0.1", "port": relay.port, "exchange": "", "routing_key": name}, ids)


@asynccontextmanager
async def _kafka(_: Any) -> AsyncIterator[Goal]:
    with MockCluster() as cluster:
        topic = cluster.create("orders", 1)
        async with Relay(cluster.port) as relay:
            cluster.advertise("127.0.0.1", relay.port)

            async def ids(count: int) -> list[str]:
                return [header(one, "menzil-id") for one in await asyncio.to_thread(records, cluster, topic, count)]

            config = {"servers": [f"127.0.0.1:{relay.port}"], "topic": topic, "compression": "none"}
            # An idempotent producer has five requests under way, then it waits for an answer. A worker that is held up
            # while it hands over a batch would fill them with a few messages each.
            yield Goal(relay, "kafka", config, ids, at_once={"linger_ms": 1000})


@asynccontextmanager
async def _mqtt(server: Any) -> AsyncIterator[Goal]:
    topic, got = fresh("t"), []
    reader = await asyncio.to_thread(Subscriber, server.mqtt_port, topic, "3.1.1")
    async with Relay(server.mqtt_port) as relay:

        async def ids(_: int) -> list[str]:
            got.extend([json.loads(one.payload)["id"] for one in await reader.all()])
            return list(got)

        config = {"host": "127.0.0.1", "port": relay.port, "topic": topic, "version": "3.1.1"}
        yield Goal(relay, "mqtt", config | {"cloudevents": {"mode": "structured", "source": "/shop"}}, ids)


_GOALS: dict[str, Any] = {"redis": _redis, "nats": _nats, "amqp": _amqp, "kafka": _kafka, "mqtt": _mqtt}
