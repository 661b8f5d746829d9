"""What an answer of the cluster means for a message, and what batches and producers do with it."""

from __future__ import annotations

import asyncio
import gc
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from confluent_kafka import KafkaError

from menzil.deliver.kafka import Kafka, producers
from menzil.model.outcome import Complete
from tests.brokers.kafka.stage import INIT_PRODUCER_ID, MockCluster, header, kafka_endpoint, records
from tests.brokers.servers import free_port
from tests.brokers.stage import completed, failed, fresh, in_loop, message, speaking


@in_loop
async def test_a_batch_has_an_outcome_for_each_message(cluster: MockCluster) -> None:
    topic = cluster.create(fresh("orders"))
    good = [message(n, ordering_key=f"k{n % 20}") for n in range(500)]
    async with speaking(Kafka) as broker:
        endpoint = kafka_endpoint(cluster, topic, max_message_bytes=100_000)
        bad = {
            3: message("x" * 100_000),
            7: message(headers={"a b": "c"}),
            11: message(ordering_key="\ud800"),
        }
        sent = [bad.get(n, each) for n, each in enumerate(good)]
        found = await broker.deliver_many(sent, endpoint)
        assert {n: failed(each)[0] for n, each in enumerate(found) if n in bad} == dict.fromkeys(bad, "message")
        assert "max_message_bytes is 100000" in failed(found[3])[1]
        assert all(isinstance(each, Complete) for n, each in enumerate(found) if n not in bad)
    stored = {header(each, "menzil-id"): (each.partition(), each.offset()) for each in records(cluster, topic, 497)}
    assert len(stored) == 497
    for each, outcome in zip(sent, found, strict=True):
        if isinstance(outcome, Complete):
            assert outcome.response
            assert stored[each.wire_id] == (outcome.response["partition"], outcome.response["offset"])


@pytest.mark.parametrize("code", [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD])
@in_loop
async def test_a_request_that_is_refused_for_one_message_fails_only_that_one(cluster: MockCluster, code: int) -> None:
    topic = cluster.create(fresh("orders"), 1)
    async with speaking(Kafka) as broker:
        endpoint = kafka_endpoint(cluster, topic)
        completed(await broker.deliver(message(), endpoint))
        # All fifty are in one request, which is refused; then each goes alone, and the first of these is refused.
        # A busy machine may send them in two requests, both are refused, and all arrive: then fifty more are sent.
        rounds = 0
        kinds: list[str | None] = []
        while not any(kinds) and rounds < 10:
            rounds += 1
            cluster.refuses(code, code)
            found = await broker.deliver_many([message() for _ in range(50)], endpoint)
            kinds = [None if isinstance(each, Complete) else failed(each)[0] for each in found]
    assert sorted(kinds, key=str) == [None] * 49 + ["message"]
    assert len(records(cluster, topic, 50 * rounds)) == 50 * rounds


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "endpoint"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "endpoint"),
        (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "unknown"),
    ],
)
@in_loop
async def test_a_producer_that_was_refused_works_again_at_the_next_try(
    cluster: MockCluster, code: int, kind: str
) -> None:
    topic = cluster.create(fresh("orders"), 1)
    async with speaking(Kafka) as broker:
        endpoint = kafka_endpoint(cluster, topic)
        completed(await broker.deliver(message(), endpoint))
        cluster.refuses(code)
        sent = [message(), message()]
        for each in await broker.deliver_many(sent, endpoint):
            assert failed(each)[0] == kind
        for each in await broker.deliver_many(sent, endpoint):
            completed(each)
    assert len(records(cluster, topic, 3)) == 3


@in_loop
async def test_a_login_without_the_right_to_write_blames_the_endpoint(cluster: MockCluster) -> None:
    topic = cluster.create(fresh("orders"))
    async with speaking(Kafka) as broker:
        endpoint = kafka_endpoint(cluster, topic, client_id="no rights")
        cluster.refuses(KafkaError.CLUSTER_AUTHORIZATION_FAILED, request=INIT_PRODUCER_ID)
        kind, reason = failed(await broker.deliver(message(), endpoint))
        assert kind == "endpoint"
        assert "CLUSTER_AUTHORIZATION_FAILED" in reason
        completed(await broker.deliver(message(), endpoint))


@in_loop
async def test_what_the_cluster_retries_is_written_once(cluster: MockCluster) -> None:
    topic = cluster.create(fresh("orders"), 1)
    async with speaking(Kafka) as broker:
        endpoint = kafka_endpoint(cluster, topic)
        completed(await broker.deliver(message(), endpoint))
        cluster.refuses(
            KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.REQUEST_TIMED_OUT, KafkaError.NOT_LEADER_FOR_PARTITION
        )
        for each in await broker.deliver_many([message() for _ in range(20)], endpoint):
            completed(each)
    assert len(records(cluster, topic, 21)) == 21


@in_loop
async def test_an_unknown_topic_and_a_dead_cluster_are_told_apart(cluster: MockCluster) -> None:
    topic, closed = fresh("nowhere"), fresh("closed")
    cluster.says_of(topic, KafkaError.UNKNOWN_TOPIC_OR_PART)
    cluster.says_of(closed, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    async with speaking(Kafka) as broker:
        kind, reason = failed(await broker.deliver(message(), kafka_endpoint(cluster, topic)))
        assert kind == "endpoint"
        assert f"UNKNOWN_TOPIC_OR_PART: Broker: Unknown topic or partition (topic {topic})" in reason
        kind, reason = failed(await broker.deliver(message(), kafka_endpoint(cluster, closed)))
        assert kind == "endpoint"
        assert "TOPIC_AUTHORIZATION_FAILED" in reason
        dead = kafka_endpoint(cluster, topic, servers=[f"127.0.0.1:{free_port()}"], connect_timeout_seconds=0.5)
        kind, reason = failed(await broker.deliver(message(), dead))
        assert kind == "endpoint"
        assert "Connection refused" in reason
        assert broker.kept == 1  # nothing goes on knocking at the door of a dead cluster
        cluster.create(topic)
        cluster.says_of(topic, 0)
        completed(await broker.deliver(message(), kafka_endpoint(cluster, topic)))


@in_loop
async def test_endpoints_of_one_cluster_share_a_producer_until_one_is_altered(cluster: MockCluster) -> None:
    topics = [cluster.create(fresh("orders")) for _ in range(3)]
    async with speaking(Kafka) as broker:
        endpoints = [kafka_endpoint(cluster, topic) for topic in topics]
        found = await asyncio.gather(*(broker.deliver(message(), endpoint) for endpoint in endpoints))
        assert [completed(each)["topic"] for each in found] == topics
        assert broker.kept == 1
        config = {**endpoints[0].config, "auth": {"type": "plain", "username": "u", "password": "canary-word"}}
        altered = replace(endpoints[0], config=config, updated_at=datetime.now(UTC))
        kind, reason = failed(await broker.deliver(message(), altered))
        assert kind == "endpoint"
        assert "SASL" in reason
        assert "canary" not in reason
        back = replace(endpoints[0], updated_at=datetime.now(UTC))
        completed(await broker.deliver(message(), back))


@in_loop
async def test_an_address_that_is_not_allowed_is_refused_before_anything_is_sent(cluster: MockCluster) -> None:
    async with speaking(Kafka, broker_allowed_networks="") as broker:
        kind, reason = failed(await broker.deliver(message(), kafka_endpoint(cluster, "orders")))
        assert kind == "endpoint"
        assert "(setting broker_allowed_networks)" in reason
        mixed = kafka_endpoint(cluster, "orders", servers=["nowhere.invalid:9092", *cluster.servers])
        assert "(setting broker_allowed_networks)" in failed(await broker.deliver(message(), mixed))[1]
        assert broker.kept == 0


@in_loop
async def test_producers_close_when_idle_and_leave_no_thread(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producers, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(producers, "_TICK", 0.01)
    topic = cluster.create(fresh("orders"))
    before = set(threading.enumerate())  # those of a test with a dead cluster may still be ending
    async with speaking(Kafka) as broker:
        completed(await broker.deliver(message(), kafka_endpoint(cluster, topic)))
        while broker.kept or any(one.name.startswith("menzil-kafka") for one in set(threading.enumerate()) - before):
            await asyncio.sleep(0.01)
        gc.collect()
        completed(await broker.deliver(message(), kafka_endpoint(cluster, topic)))


@in_loop
async def test_producers_are_bounded_in_number(cluster: MockCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "MOST", 3)
    topic = cluster.create(fresh("orders"))
    async with speaking(Kafka) as broker:
        for n in range(6):
            completed(await broker.deliver(message(), kafka_endpoint(cluster, topic, client_id=f"c{n}")))
            assert broker.kept <= 3


@in_loop
async def test_librdkafka_writes_nothing_to_standard_error(
    cluster: MockCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = cluster.create(fresh("orders"))
    async with speaking(Kafka) as broker:
        cluster.refuses(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)  # which it logs as an emergency
        failed(await broker.deliver(message(), kafka_endpoint(cluster, topic)))
        failed(
            await broker.deliver(
                message(),
                kafka_endpoint(cluster, topic, servers=[f"127.0.0.1:{free_port()}"], connect_timeout_seconds=0.5),
            )
        )
        failed(await broker.deliver(message(), kafka_endpoint(cluster, topic, tls={})))
    assert capfd.readouterr().err == ""
