"""What tests of Kafka need: the cluster of librdkafka in a process of its own, endpoints, and other readers."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import confluent_kafka

from menzil.deliver.protocol import Endpoint

PRODUCE, INIT_PRODUCER_ID = 0, 22  # kinds of requests
PATIENCE = 60.0
_numbers = itertools.count(1_000_000)


class MockCluster:
    """A cluster that can be frozen, and told what to answer."""

    def __init__(self, brokers: int = 1) -> None:
        self._brokers = brokers

    def __enter__(self) -> Self:
        program = [sys.executable, str(Path(__file__).with_name("mock_cluster.py")), str(self._brokers)]
        self._process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self.servers = self._process.stdout.readline().strip().split(",")
        assert self.servers[0], "the mock cluster does not start"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.thaw()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.terminate()
        self._process.wait(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _tell(self, *words: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "ok\n"

    def create(self, topic: str, partitions: int = 4) -> str:
        """Make a topic, and return its name."""
        self._tell("create", topic, partitions)
        return topic

    def says_of(self, topic: str, code: int) -> None:
        """What the cluster says of this topic from now on; 0 is nothing."""
        self._tell("topic", topic, code)

    def refuses(self, *codes: int, request: int = PRODUCE) -> None:
        """The next requests of this kind end with these errors."""
        self._tell("push", request, *codes)

    def advertise(self, host: str, port: int) -> None:
        """Clients find the first broker there."""
        self._tell("advertise", host, port)

    @property
    def port(self) -> int:
        return int(self.servers[0].rpartition(":")[2])

    def freeze(self) -> None:
        """Return when every thread has stopped."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)


def kafka_endpoint(cluster: MockCluster, topic: str, **config: Any) -> Endpoint:
    known = {"servers": cluster.servers, "topic": topic, **config}
    return Endpoint(next(_numbers), "billing", "kafka", known, datetime.now(UTC))


def records(cluster: MockCluster, topic: str, count: int) -> list[confluent_kafka.Message]:
    """All records of a topic, as a consumer gets them: at least `count`, and what the partitions hold besides."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": ",".join(cluster.servers),
            "group.id": "reader",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    try:
        partitions = list(consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions)
        places = [confluent_kafka.TopicPartition(topic, each, confluent_kafka.OFFSET_BEGINNING) for each in partitions]
        consumer.assign(places)
        found: list[confluent_kafka.Message] = []
        at_end: set[int] = set()
        ends = time.monotonic() + PATIENCE
        while len(found) < count or at_end < set(partitions):
            assert time.monotonic() < ends, f"{len(found)} of {count} records"
            for each in consumer.consume(500, 0.02):
                error = each.error()
                if error is None:
                    found.append(each)
                    at_end.discard(each.partition())
                else:
                    assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                    at_end.add(each.partition())
        return found
    finally:
        consumer.close()


def headers(record: confluent_kafka.Message) -> dict[str, bytes]:
    found: Any = record.headers() or []
    assert len(found) == len(dict(found))
    return dict(found)


def header(record: confluent_kafka.Message, name: str) -> str:
    return headers(record)[name].decode()
