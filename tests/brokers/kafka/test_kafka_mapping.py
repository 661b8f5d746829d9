"""Every row of the mapping, as other libraries read it from librdkafka's mock of a cluster."""

from __future__ import annotations

import json
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary, from_structured
from cloudevents.core.formats.json import JSONFormat

from menzil.deliver.kafka import Kafka
from menzil.model.message import Message
from tests.brokers.kafka.stage import MockCluster, header, headers, kafka_endpoint, records
from tests.brokers.stage import completed, failed, fresh, in_loop, message, speaking
from tests.brokers.test_mapping import CORRELATION, EVENT, TRACE, full


async def deliver(cluster: MockCluster, sent: Message, **config: Any) -> tuple[dict[str, Any], confluent_kafka.Message]:
    topic = cluster.create(fresh("orders"))
    async with speaking(Kafka) as broker:
        said = completed(await broker.deliver(sent, kafka_endpoint(cluster, topic, **config)))
    (found,) = records(cluster, topic, 1)
    assert said["topic"] == topic
    return said, found


@in_loop
async def test_a_consumer_reads_every_header(cluster: MockCluster) -> None:
    sent = full()
    said, found = await deliver(cluster, sent, headers={"X-Shop": "1"})
    assert said["duration_ms"] >= 0
    assert (said["partition"], said["offset"]) == (found.partition(), found.offset())
    assert said["correlation_id"] == str(CORRELATION)
    assert json.loads(found.value() or b"") == {"order": 42}
    assert found.key() == "Müşteri 7".encode()
    assert found.timestamp() == (confluent_kafka.TIMESTAMP_CREATE_TIME, 1767323045678)
    assert {name: value.decode() for name, value in headers(found).items()} == {
        "menzil-id": sent.wire_id,
        "menzil-type": "order.paid",
        "menzil-attempt": "3",
        "content-type": "application/vnd.shop+json",
        "correlation-id": str(CORRELATION),
        "x-tenant": "acme",
        "x-city": "İzmir",
        "x-shop": "1",
        "traceparent": TRACE,
        "tracestate": "a=b",
    }


@in_loop
async def test_aiokafka_reads_the_least_that_a_message_has(cluster: MockCluster) -> None:
    topic, sent = cluster.create(fresh("orders"), 1), message(content=b"\x00\xff")
    async with speaking(Kafka) as broker:
        completed(await broker.deliver(sent, kafka_endpoint(cluster, topic, compression="zstd")))
        completed(await broker.deliver(message(content=b""), kafka_endpoint(cluster, topic, compression="none")))
    place = aiokafka.TopicPartition(topic, 0)
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=cluster.servers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([place])
        found = [await consumer.getone(), await consumer.getone()]
    finally:
        await consumer.stop()
    assert [each.value for each in found] == [b"\x00\xff", b""]
    assert [each.key for each in found] == [None, None]
    assert dict(found[0].headers) == {
        "menzil-id": sent.wire_id.encode(),
        "menzil-type": b"billing",
        "menzil-attempt": b"1",
        "content-type": b"application/octet-stream",
    }


@pytest.mark.parametrize(
    ("key", "wanted"), [("message_id", None), ("none", None), ({"text": "shop"}, b"shop"), ("ordering_key", b"k")]
)
@in_loop
async def test_the_record_key_is_what_the_endpoint_says(cluster: MockCluster, key: Any, wanted: bytes | None) -> None:
    sent = message(ordering_key="k")
    _, found = await deliver(cluster, sent, key=key)
    assert found.key() == (sent.wire_id.encode() if key == "message_id" else wanted)
    names = headers(found)
    assert names.get("menzil-key") == (None if key == "ordering_key" else b"k")


@in_loop
async def test_keys_choose_the_partitions_that_java_chooses(cluster: MockCluster) -> None:
    topic = cluster.create(fresh("orders"), 10)
    async with speaking(Kafka) as broker:
        sent = [message(ordering_key=key) for key in ("21", "foobar", "a-little-bit-long-string")]
        found = await broker.deliver_many(sent, kafka_endpoint(cluster, topic))
    # Hashes from the tests of Kafka's own client, without their sign, modulo 10.
    hashes = (-973932308, -790332482, -985981536)
    assert [completed(each)["partition"] for each in found] == [(each & 0x7FFFFFFF) % 10 for each in hashes]


@in_loop
async def test_a_fixed_partition_gets_everything(cluster: MockCluster) -> None:
    topic = cluster.create(fresh("orders"), 4)
    async with speaking(Kafka) as broker:
        sent = [message(ordering_key=f"k{n}") for n in range(20)]
        found = await broker.deliver_many(sent, kafka_endpoint(cluster, topic, partition=3))
        assert {completed(each)["partition"] for each in found} == {3}
        kind, reason = failed(await broker.deliver(message(), kafka_endpoint(cluster, topic, partition=9)))
    assert kind == "endpoint"
    assert "partition" in reason.lower()


@pytest.mark.parametrize("mode", ["binary", "structured"])
@in_loop
async def test_the_official_sdk_reads_cloudevents(cluster: MockCluster, mode: str) -> None:
    sent = full()
    _, found = await deliver(cluster, sent, cloudevents={"mode": mode, "source": "/shop"})
    raw = KafkaMessage(headers=headers(found), key=found.key(), value=found.value() or b"")
    read = from_binary if mode == "binary" else from_structured
    event = read(raw, JSONFormat())
    attributes = event.get_attributes()
    assert event.get_data() == {"order": 42}
    assert attributes.pop("time").isoformat() == "2026-01-02T03:04:05.678901+00:00"
    wanted = {name: value for name, value in EVENT.items() if name != "time"}
    assert attributes == wanted | {"id": sent.wire_id, "datacontenttype": "application/vnd.shop+json"}
    assert attributes["partitionkey"].encode() == found.key()
    own = {name for name in headers(found) if name.startswith("ce_")}
    assert bool(own) == (mode == "binary")


@in_loop
async def test_a_message_chooses_among_the_topics_that_are_listed(cluster: MockCluster) -> None:
    usual, other, forbidden = (cluster.create(fresh("orders")) for _ in range(3))
    sent = [
        message(metadata={"overrides": {"topic": topic}, "event_type": topic}) for topic in (usual, other, forbidden)
    ]
    wrong: list[Any] = [{"subject": other}, [], {"topic": 7}, None]
    sent += [message(metadata={"overrides": each}) for each in wrong]
    async with speaking(Kafka) as broker:
        endpoint = kafka_endpoint(cluster, usual, allow_overrides={"topic": [other]})
        found = await broker.deliver_many(sent, endpoint)
        assert [completed(each)["topic"] for each in found[:2]] == [usual, other]
        for each in found[2:]:
            kind, reason = failed(each)
            assert kind == "message"
            assert "overrides" in reason
    assert [header(each, "menzil-type") for each in records(cluster, other, 1)] == [other]
    assert len(records(cluster, usual, 1)) == 1
    assert records(cluster, forbidden, 0) == []
