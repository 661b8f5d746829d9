"""A real RabbitMQ: every row of the mapping as aio-pika reads it, logins, and what it says about messages."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme

from menzil.deliver.amqp import Amqp
from menzil.model.outcome import Complete, Defer
from tests.brokers.amqp.conftest import LARGEST_MESSAGE
from tests.brokers.amqp.peer import amqp_endpoint
from tests.brokers.amqp.rabbit import Rabbit
from tests.brokers.amqp.readers import channel_of, held, new_queue
from tests.brokers.amqp.test_amqp_login import client_of
from tests.brokers.relay import Relay
from tests.brokers.stage import completed, failed, fresh, in_loop, message, speaking
from tests.brokers.test_mapping import CORRELATION, EVENT, TRACE, full

pytestmark = pytest.mark.slow


@in_loop
async def test_aio_pika_reads_every_property(rabbit: Rabbit) -> None:
    name, sent = fresh("orders"), full(priority=7)
    async with speaking(Amqp) as broker, channel_of(rabbit.port) as channel:
        queue = await new_queue(channel, name)
        said = completed(await broker.deliver(sent, amqp_endpoint(rabbit.port, name, headers={"X-Shop": "1"})))
        assert said.pop("duration_ms") >= said.pop("confirm_ms") >= 0
        assert said == {"delivery_tag": 1, "correlation_id": str(CORRELATION)}
        (found,) = await held(queue)
    assert json.loads(found.body) == {"order": 42}
    assert found.message_id == sent.wire_id
    assert found.type == "order.paid"
    assert found.app_id == "menzil"
    assert found.content_type == "application/vnd.shop+json"
    assert found.correlation_id == str(CORRELATION)
    assert found.priority == 7
    assert found.delivery_mode == 2
    assert found.timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert isinstance(found.expiration, int | float)
    assert 90 < found.expiration <= 100
    assert (found.exchange, found.routing_key) == ("", name)
    assert dict(found.headers) == {
        "menzil-attempt": 3,
        "menzil-key": "Müşteri 7",
        "x-tenant": "acme",
        "x-city": "İzmir",
        "x-shop": "1",
        "traceparent": TRACE,
        "tracestate": "a=b",
    }


@in_loop
async def test_aio_pika_reads_the_least_that_a_message_has(rabbit: Rabbit) -> None:
    name = fresh("orders")
    far = datetime.now(UTC) + timedelta(days=400)  # longer than RabbitMQ can count
    async with speaking(Amqp) as broker, channel_of(rabbit.port) as channel:
        queue = await new_queue(channel, name)
        endpoint = amqp_endpoint(rabbit.port, name, persistent=False)
        for one in (message(content=b""), message(content=b"\x00\xff", expires_at=far)):
            completed(await broker.deliver(one, endpoint))
        empty, other = await held(queue)
    assert (empty.body, other.body) == (b"", b"\x00\xff")
    assert empty.content_type == "application/octet-stream"
    assert (empty.type, empty.delivery_mode, empty.priority) == ("billing", 1, 0)
    assert (empty.correlation_id, empty.expiration, other.expiration) == (None, None, None)
    assert dict(empty.headers) == {"menzil-attempt": 1}


@in_loop
async def test_cloudevents_of_rabbitmq(rabbit: Rabbit) -> None:
    name, sent = fresh("orders"), full()
    async with speaking(Amqp) as broker, channel_of(rabbit.port) as channel:
        queue = await new_queue(channel, name)
        for mode in ("binary", "structured"):
            config = {"cloudevents": {"mode": mode, "source": "/shop"}}
            completed(await broker.deliver(sent, amqp_endpoint(rabbit.port, name, **config)))
        binary, structured = await held(queue)
    said = {key.removeprefix("cloudEvents:"): value for key, value in binary.headers.items() if ":" in key}
    assert said == EVENT | {"id": sent.wire_id}
    assert json.loads(binary.body) == {"order": 42}
    assert binary.content_type == "application/vnd.shop+json"
    assert structured.content_type == "application/cloudevents+json"
    document = json.loads(structured.body)
    more = {"id": sent.wire_id, "datacontenttype": "application/vnd.shop+json", "data": {"order": 42}}
    assert document == EVENT | more


@in_loop
async def test_messages_that_no_queue_takes_are_not_delivered(rabbit: Rabbit) -> None:
    exchange, name = fresh("shop"), fresh("orders")
    async with speaking(Amqp) as broker, channel_of(rabbit.port) as channel:
        queue = await new_queue(channel, name)
        shop = await channel.declare_exchange(exchange, "direct")
        await queue.bind(shop, "paid")
        good = amqp_endpoint(rabbit.port, "paid", exchange=exchange)
        for outcome in await broker.deliver_many([message(n) for n in range(500)], good):
            completed(outcome)
        for unroutable, kind in (("retry", "endpoint"), ("dead_letter", "message")):
            lost = amqp_endpoint(rabbit.port, "none", exchange=exchange, unroutable=unroutable)
            found = await broker.deliver_many([message(content=b"x" * n * 100_000) for n in range(5)], lost)
            assert {failed(outcome)[0] for outcome in found} == {kind}
        careless = amqp_endpoint(rabbit.port, "none", exchange=exchange, mandatory=False)
        completed(await broker.deliver(message(), careless))  # asked for, and the documentation says so
        assert len(await held(queue)) == 500


@in_loop
async def test_a_full_queue_refuses_what_it_has_no_room_for(rabbit: Rabbit) -> None:
    name = fresh("orders")
    async with speaking(Amqp) as broker, channel_of(rabbit.port) as channel:
        queue = await new_queue(channel, name, **{"x-max-length": 30, "x-overflow": "reject-publish"})
        endpoint = amqp_endpoint(rabbit.port, name)
        batch = [message(n) for n in range(100)]
        found = await broker.deliver_many(batch, endpoint)
        taken = [one.wire_id for one, outcome in zip(batch, found, strict=True) if isinstance(outcome, Complete)]
        assert {failed(outcome)[0] for outcome in found if not isinstance(outcome, Complete)} == {"busy"}
        assert sorted(taken) == sorted(str(one.message_id) for one in await held(queue))
        assert 30 <= len(taken) < 100
        completed(await broker.deliver(message(), endpoint))
        assert broker.kept == 1


@in_loop
async def test_messages_as_large_as_allowed_and_larger(rabbit: Rabbit) -> None:
    name = fresh("orders")
    async with speaking(Amqp) as broker, channel_of(rabbit.port) as channel:
        queue = await new_queue(channel, name)
        endpoint, sizes = amqp_endpoint(rabbit.port, name), (5, LARGEST_MESSAGE, LARGEST_MESSAGE + 1, 7)
        batch = [message(content=bytes(range(256)) * (size // 256 + 1)) for size in sizes]
        batch = [message(content=(one.content or b"")[:size]) for one, size in zip(batch, sizes, strict=True)]
        stored: dict[str | None, bytes] = {}
        found = await broker.deliver_many(batch, endpoint)
        kind, reason = failed(found[2])
        assert (kind, "max size 1000000" in reason) == ("message", True)
        left = [one for one, outcome in zip(batch, found, strict=True) if isinstance(outcome, Defer)]
        for outcome in await broker.deliver_many(left, endpoint):
            completed(outcome)
        stored = {one.message_id: one.body for one in await held(queue)}
    assert stored == {one.wire_id: one.content for place, one in enumerate(batch) if place != 2}


@in_loop
async def test_an_exchange_that_is_missing_blames_the_endpoint(rabbit: Rabbit) -> None:
    async with speaking(Amqp) as broker:
        endpoint = amqp_endpoint(rabbit.port, "x", exchange=fresh("none"))
        batch = [message(n) for n in range(500)]
        assert set(await broker.deliver_many(batch, endpoint)) == {Defer()}
        found = await broker.deliver_many(batch, endpoint)
        kind, reason = failed(found[0])
        assert (kind, "404 NOT_FOUND - no exchange" in reason) == ("endpoint", True)
        assert set(found[1:]) == {Defer()}


@in_loop
async def test_logins_of_rabbitmq(rabbit: Rabbit, ca: trustme.CA) -> None:
    name = fresh("orders")
    async with speaking(Amqp) as broker, channel_of(rabbit.port) as channel:
        queue = await new_queue(channel, name)
        bad: list[tuple[dict[str, Any], str]] = [
            ({"auth": {"type": "plain", "username": "guest", "password": "canary-wrong"}}, "403 ACCESS_REFUSED"),
            ({"vhost": "nowhere"}, "530 NOT_ALLOWED"),
            ({"auth": {"type": "external"}, "tls": client_of(ca), "port": rabbit.tls_port}, "403 ACCESS_REFUSED"),
            ({"tls": {"ca": client_of(ca)["ca"]}, "port": rabbit.tls_port, "host": "localhost"}, "was not accepted"),
        ]
        for config, words in bad:
            kind, reason = failed(await broker.deliver(message(), amqp_endpoint(rabbit.port, name, **config)))
            assert (kind, words in reason, "canary" in reason) == ("endpoint", True, False), reason
        rabbit.control("add_user", "shop", "unused")
        rabbit.control("set_permissions", "shop", "", ".*", "")
        mine = {"auth": {"type": "external"}, "tls": client_of(ca, "shop"), "port": rabbit.tls_port}
        completed(await broker.deliver(message(1), amqp_endpoint(rabbit.port, name, **mine)))
        plain = {"tls": {"ca": client_of(ca)["ca"]}, "port": rabbit.tls_port}
        completed(await broker.deliver(message(2), amqp_endpoint(rabbit.port, name, **plain)))
        assert [one.body for one in await held(queue)] == [b"1", b"2"]
        rabbit.control("set_permissions", "shop", "", "", "")
        found = await broker.deliver(message(), amqp_endpoint(rabbit.port, "x", exchange="amq.direct", **mine))
        assert (failed(found)[0], "403 ACCESS_REFUSED" in failed(found)[1]) == ("endpoint", True)


@in_loop
async def test_bytes_of_a_connection_that_was_given_up_arrive_late(rabbit: Rabbit) -> None:
    """A repeat comes after newer messages of its key: the documentation says so."""
    name = fresh("orders")
    async with Relay(rabbit.port) as relay, channel_of(rabbit.port) as channel, speaking(Amqp) as broker:
        queue = await new_queue(channel, name)
        endpoint = amqp_endpoint(relay.port, name, timeout_seconds=3)
        first, second = message(1, ordering_key="k"), message(2, ordering_key="k")
        completed(await broker.deliver(message(0, ordering_key="k"), endpoint))
        relay.hold()
        assert failed(await broker.deliver(first, endpoint))[0] == "unknown"
        completed(await broker.deliver(first, endpoint))
        completed(await broker.deliver(second, endpoint))
        assert relay.connections == 2
        relay.release()
        found: list[Any] = []
        async with asyncio.timeout(30):
            while len(found) < 4:
                found += await held(queue)
        assert [one.body for one in found] == [b"0", b"1", b"2", b"1"]
        assert found[1].message_id == found[3].message_id


@in_loop
async def test_a_server_that_is_low_on_memory_takes_messages_later(rabbit: Rabbit) -> None:
    name = fresh("orders")
    async with speaking(Amqp) as broker, channel_of(rabbit.port) as channel:
        queue = await new_queue(channel, name)
        endpoint, story = amqp_endpoint(rabbit.port, name, timeout_seconds=30), [message(n) for n in range(3)]
        completed(await broker.deliver(story[0], endpoint))
        rabbit.control("set_vm_memory_high_watermark", "absolute", "1")
        try:
            waiting = asyncio.create_task(broker.deliver_many(story[1:], endpoint))
            done, _ = await asyncio.wait([waiting], timeout=1)
            assert not done
        finally:
            await asyncio.to_thread(rabbit.control, "set_vm_memory_high_watermark", "absolute", "1GB")
        for outcome in await waiting:
            completed(outcome)
        assert [one.body for one in await held(queue)] == [b"0", b"1", b"2"]
