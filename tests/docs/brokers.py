"""What readers of the pages about brokers have: a broker, and a worker that delivers to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import nats
import redis

import menzil
from tests.brokers.kafka.stage import MockCluster, records
from tests.brokers.mqtt.servers import NatsMqtt
from tests.brokers.mqtt.subscriber import Subscriber
from tests.brokers.servers import NatsServer, Valkey
from tests.docs.running import Run


@contextmanager
def working(app: menzil.Worker) -> Iterator[None]:
    thread = threading.Thread(target=app.run)
    thread.start()
    try:
        yield
    finally:
        app.stop()
        thread.join(60)


@contextmanager
def to_kafka(run: Run) -> Iterator[None]:
    with MockCluster() as broker:
        run.stand_ins |= {
            "10.20.0.0/16": "127.0.0.0/8",
            "kafka-1.internal:9092": broker.servers[0],
            "kafka-2.internal:9092": f"127.0.0.2:{broker.port}",
        }
        broker.create("orders")
        with working(menzil.Worker(run.dsn, janitors=False)):
            yield
        assert len(records(broker, "orders", 1)) == 1


@contextmanager
def to_mqtt(run: Run) -> Iterator[None]:
    """NATS is there on every machine, and speaks 3.1.1."""
    login = {"username": "menzil", "password": "s3cret"}
    with NatsMqtt('authorization { user: "menzil", password: "s3cret" }') as broker:
        run.stand_ins |= {
            "10.20.0.0/16": "127.0.0.0/8",
            '"host": "mqtt.internal"': f'"host": "127.0.0.1", "port": {broker.mqtt_port}, "version": "3.1.1"',
            '"…"': '"s3cret"',
        }
        subscriber = Subscriber(broker.mqtt_port, "shop/orders", "3.1.1", **login)
        with working(menzil.Worker(run.dsn, janitors=False)):
            yield
        assert len(subscriber.read()) == 1


@contextmanager
def to_nats(run: Run) -> Iterator[None]:
    with NatsServer(lines='authorization { token: "s3cret" }') as broker:
        run.stand_ins |= {
            "10.20.0.0/16": "127.0.0.0/8",
            "nats-1.internal:4222": f"127.0.0.1:{broker.port}",
            "nats-2.internal:4222": f"127.0.0.2:{broker.port}",
            '"…"': '"s3cret"',
        }
        stored = 0

        async def stream(end: bool) -> int:
            client = await nats.connect(f"nats://127.0.0.1:{broker.port}", token="s3cret")
            try:
                context = client.jetstream()
                if not end:
                    await context.add_stream(name="ORDERS", subjects=["orders.>"], duplicate_window=3600)
                return (await context.stream_info("ORDERS")).state.messages
            finally:
                await client.close()

        stored = asyncio.run(stream(end=False))
        with working(menzil.Worker(run.dsn, janitors=False)):
            yield
        assert (stored, asyncio.run(stream(end=True))) == (0, 1)


@contextmanager
def to_redis(run: Run) -> Iterator[None]:
    with Valkey() as broker, redis.Redis(port=broker.port) as reader:
        reader.acl_setuser("menzil", enabled=True, passwords=["+s3cret"], keys=["*"], categories=["+@all"])
        run.stand_ins |= {
            "10.20.0.0/16": "127.0.0.0/8",
            '"host": "valkey.internal"': f'"host": "127.0.0.1", "port": {broker.port}',
            '"…"': '"s3cret"',
        }
        with working(menzil.Worker(run.dsn, janitors=False)):
            yield
        assert reader.xlen("orders") == 1
