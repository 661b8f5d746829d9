"""A cluster that freezes, lines that swallow bytes, and batches that are given up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from menzil.deliver.broker.protocol import Broker
from menzil.deliver.kafka import Kafka
from menzil.deliver.protocol import Endpoint
from menzil.model.message import Message
from menzil.model.outcome import Complete, Outcome
from tests.brokers.kafka.stage import MockCluster, header, kafka_endpoint, records
from tests.brokers.relay import Relay
from tests.brokers.stage import completed, failed, in_loop, message, speaking


def begin(broker: Broker, sent: Sequence[Message], endpoint: Endpoint) -> asyncio.Task[Sequence[Outcome]]:
    async def deliver() -> Sequence[Outcome]:
        return await broker.deliver_many(sent, endpoint)

    return asyncio.create_task(deliver())


async def until_acknowledged(broker: Broker, sent: Sequence[Message], endpoint: Endpoint) -> None:
    """Deliver as a worker does: what failed is tried again with the same id."""
    left = list(sent)
    while left:
        found = await broker.deliver_many(left, endpoint)
        left = [each for each, outcome in zip(left, found, strict=True) if not isinstance(outcome, Complete)]


@in_loop
async def test_a_freeze_that_ends_before_the_deadline_loses_and_repeats_nothing() -> None:
    with MockCluster() as cluster:
        topic = cluster.create("orders", 4)
        endpoint = kafka_endpoint(cluster, topic, timeout_seconds=20)
        async with speaking(Kafka) as broker:
            completed(await broker.deliver(message(), endpoint))
            cluster.freeze()
            batches = [[message(n, ordering_key=f"k{n}") for n in range(200)] for _ in range(3)]
            trying = [begin(broker, each, endpoint) for each in batches]
            done, _ = await asyncio.wait(trying, timeout=1)
            assert not done
            cluster.thaw()
            for task in trying:
                for each in await task:
                    completed(each)
        stored = [header(each, "menzil-id") for each in records(cluster, topic, 601)]
    assert {each.wire_id for sent in batches for each in sent} <= set(stored)
    assert len(stored) == len(set(stored)) == 601


@in_loop
async def test_a_freeze_beyond_the_deadline_loses_nothing_and_keeps_the_order_of_a_key() -> None:
    """Whether the cluster took what it was sent before the freeze is unknown, so it may hold messages twice."""
    with MockCluster() as cluster:
        topic = cluster.create("orders", 4)
        endpoint = kafka_endpoint(cluster, topic, timeout_seconds=1)
        async with speaking(Kafka) as broker:
            # The first second includes the login, for which a busy machine may need longer.
            await until_acknowledged(broker, [message()], endpoint)
            cluster.freeze()
            first = [message(n, ordering_key=f"k{n}") for n in range(200)]
            found = await broker.deliver_many(first, endpoint)
            assert {failed(each)[0] for each in found} == {"unknown"}
            assert {failed(each)[0] for each in await broker.deliver_many(first, endpoint)} <= {"unknown", "endpoint"}
            cluster.thaw()
            # One of a key at a time: the second of each key follows when the first is acknowledged.
            await until_acknowledged(broker, first, endpoint)
            second = [message(n, ordering_key=f"k{n}") for n in range(200)]
            await until_acknowledged(broker, second, endpoint)
        stored: dict[bytes | None, list[str]] = {}
        for each in records(cluster, topic, 401):
            known = stored.setdefault(each.key(), [])
            if header(each, "menzil-id") not in known:
                known.append(header(each, "menzil-id"))
    for one, two in zip(first, second, strict=True):
        assert stored[(one.ordering_key or "").encode()] == [one.wire_id, two.wire_id]


@in_loop
async def test_a_late_report_settles_nothing() -> None:
    """Reports of a batch that was given up come while the next batch waits for its own."""
    with MockCluster() as cluster:
        topic = cluster.create("orders", 1)
        endpoint = kafka_endpoint(cluster, topic, timeout_seconds=20)
        async with speaking(Kafka) as broker:
            completed(await broker.deliver(message(), endpoint))
            cluster.freeze()
            other = begin(broker, [message() for _ in range(10)], endpoint)
            first = begin(broker, [message() for _ in range(10)], endpoint)
            await asyncio.wait([first], timeout=0.2)
            first.cancel()  # the producer goes on, because another batch is under way
            await asyncio.wait([first])
            second = begin(broker, [message("x" * 2_000_000), message()], endpoint)
            await asyncio.wait([second], timeout=0.2)
            assert not second.done()
            cluster.thaw()
            large, small = await second
            assert failed(large)[0] == "message"
            assert completed(small)["offset"] == 21  # and not that of a message of the first batch
            assert [completed(each)["offset"] for each in await other] == list(range(1, 11))


@in_loop
async def test_a_batch_that_is_cancelled_does_not_stay_in_librdkafka() -> None:
    with MockCluster() as cluster:
        topic = cluster.create("orders", 1)
        endpoint = kafka_endpoint(cluster, topic, timeout_seconds=300)
        async with speaking(Kafka) as broker:
            completed(await broker.deliver(message(), endpoint))
            cluster.freeze()
            trying = begin(broker, [message() for _ in range(3)], endpoint)
            await asyncio.wait([trying], timeout=0.2)
            trying.cancel()
            await asyncio.wait([trying])
            assert broker.kept == 0
        cluster.thaw()
        assert len(records(cluster, topic, 1)) <= 4


@pytest.mark.parametrize("fault", ["swallow", "mute", "cut"])
@in_loop
async def test_a_line_that_swallows_bytes_or_is_cut_loses_nothing(fault: str) -> None:
    """Bytes vanish both ways, or only answers do, or a reset comes in the middle of an answer."""
    with MockCluster() as cluster:
        topic = cluster.create("orders", 1)
        async with Relay(cluster.port) as relay, speaking(Kafka) as broker:
            cluster.advertise("127.0.0.1", relay.port)
            config = {"servers": [f"127.0.0.1:{relay.port}"], "timeout_seconds": 3, "connect_timeout_seconds": 3}
            endpoint = kafka_endpoint(cluster, topic, **config)
            completed(await broker.deliver(message(), endpoint))
            sent = [message(n, ordering_key=f"k{n % 5}") for n in range(50)]
            relay.swallow, relay.mute = fault == "swallow", fault == "mute"
            relay.cut_after = 10 if fault == "cut" else None
            found = await broker.deliver_many(sent, endpoint)
            if fault != "cut":  # then librdkafka connects again by itself
                assert {failed(each)[0] for each in found} == {"unknown"}
            relay.swallow = relay.mute = False
            left = [each for each, outcome in zip(sent, found, strict=True) if not isinstance(outcome, Complete)]
            await until_acknowledged(broker, left, endpoint)
            stored = [header(each, "menzil-id") for each in await asyncio.to_thread(records, cluster, topic, 51)]
    assert {each.wire_id for each in sent} <= set(stored)
    assert len(set(stored)) == 51
    # Only what was called unknown may be there twice. After a reset librdkafka sends again by itself; a broker drops
    # such repeats by their sequence numbers, and this cluster keeps none.
    assert fault == "cut" or len(stored) <= 51 + len(left)
