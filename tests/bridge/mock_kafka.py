"""A Kafka cluster inside of librdkafka. It lives in its producer: keep the object, and keep its process."""

from __future__ import annotations

from typing import Any, Self

from confluent_kafka import Producer

PATIENCE = 60
PARTITIONS = 4


class MockKafka:
    """A cluster in memory, and a producer that writes to it."""

    def __init__(self, brokers: int = 1) -> None:
        told = {"test.mock.num.brokers": brokers, "bootstrap.servers": "mock:1", "linger.ms": 5, "log_level": 0}
        self.producer = Producer(told)
        about = self.producer.list_topics(timeout=PATIENCE)
        self.servers = [f"{broker.host}:{broker.port}" for broker in about.brokers.values()]

    def topic(self, name: str) -> str:
        """Make a topic: the cluster makes one of four partitions when it is asked for it."""
        about = self.producer.list_topics(name, PATIENCE).topics[name]
        while about.error is not None or len(about.partitions) != PARTITIONS:
            about = self.producer.list_topics(name, PATIENCE).topics[name]
        return name

    def write(self, topic: str, *bodies: bytes | None, **options: Any) -> None:
        for body in bodies:
            self.producer.produce(topic, body, **options)
            self.producer.poll(0)
        assert self.producer.flush(PATIENCE) == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        del self.producer
