"""A message may choose another stream, subject, topic or routing key among those that its endpoint lists."""

from __future__ import annotations

from typing import Any

from menzil.deliver.amqp import Amqp
from menzil.deliver.mqtt import Mqtt
from menzil.deliver.nats import Nats
from menzil.deliver.redis import Redis
from tests.brokers.amqp import peer as amqp
from tests.brokers.mqtt import peer as mqtt
from tests.brokers.servers import NatsServer, Valkey
from tests.brokers.stage import (
    completed,
    entries,
    failed,
    fresh,
    in_loop,
    jetstream,
    message,
    nats_endpoint,
    redis_endpoint,
    speaking,
    stored,
)


def wanting(name: str, value: Any) -> Any:
    return message(metadata={"overrides": {name: value}})


@in_loop
async def test_a_message_chooses_its_stream_of_redis(valkey: Valkey) -> None:
    usual, other = fresh("orders"), fresh("orders")
    async with speaking(Redis) as broker, entries(valkey.port) as client:
        for more in ({}, {"dedup_seconds": 60}):
            endpoint = redis_endpoint(valkey.port, usual, allow_overrides={"stream": [other]}, **more)
            sent = [message(), wanting("stream", other), wanting("stream", "secret"), wanting("stream", usual)]
            found = await broker.deliver_many(sent, endpoint)
            assert [completed(found[n])["stream"] for n in (0, 1, 3)] == [usual, other, usual]
            kind, reason = failed(found[2])
            assert kind == "message"
            assert "allow_overrides does not list it" in reason
        assert (await client.xlen(usual), await client.xlen(other), await client.xlen("secret")) == (4, 2, 0)


@in_loop
async def test_a_message_chooses_its_subject_of_nats(nats_server: NatsServer) -> None:
    stream, usual = fresh("S"), fresh("orders") + ".usual"
    other = usual.replace("usual", "other")
    async with (
        speaking(Nats) as broker,
        jetstream(nats_server.port, stream, usual.replace("usual", "*")) as context,
    ):
        endpoint = nats_endpoint(nats_server.port, usual, allow_overrides={"subject": [other, "nowhere"]})
        sent = [message(), wanting("subject", other), wanting("subject", "secret"), wanting("subject", "nowhere")]
        found = await broker.deliver_many(sent, endpoint)
        assert [completed(found[n])["sequence"] for n in (0, 1)] == [1, 2]
        assert failed(found[2])[0] == "message"
        kind, reason = failed(found[3])
        assert kind == "endpoint"
        assert "'nowhere'" in reason
        assert [each.subject for each in await stored(context, stream)] == [usual, other]


@in_loop
async def test_a_subject_that_nats_forbids_fails_no_other_message_of_the_batch() -> None:
    usual, other = "orders.usual", "orders.forbidden"
    rights = f'permissions: {{ publish: {{ deny: ["{other}"] }} }}'
    users = f'{{ user: "all", password: "all" }}, {{ user: "shop", password: "word", {rights} }}'
    with NatsServer(lines=f'no_auth_user: "all"\nauthorization {{ users: [ {users} ] }}') as server:
        auth = {"type": "password", "username": "shop", "password": "word"}
        endpoint = nats_endpoint(server.port, usual, auth=auth, allow_overrides={"subject": [other]})
        async with speaking(Nats) as broker, jetstream(server.port, "S", "orders.*") as context:
            for _ in range(2):
                sent = [message(), wanting("subject", other), message(), wanting("subject", other), message()]
                found = await broker.deliver_many(sent, endpoint)
                for place in (0, 2, 4):
                    assert completed(found[place])["stream"] == "S"
                for place in (1, 3):
                    kind, reason = failed(found[place])
                    assert (kind, "Permissions Violation" in reason) == ("endpoint", True)
            assert broker.kept == 0  # what the server says of the last batch must not reach the next one
            assert [each.subject for each in await stored(context, "S")] == [usual] * 6


@in_loop
async def test_without_a_list_no_message_chooses(valkey: Valkey) -> None:
    stream = fresh("orders")
    async with speaking(Redis) as broker:
        found = await broker.deliver_many(
            [wanting("stream", "other"), message(metadata={"stream": "other"})], redis_endpoint(valkey.port, stream)
        )
        assert failed(found[0])[0] == "message"
        assert completed(found[1])["stream"] == stream


@in_loop
async def test_a_message_chooses_its_topic_of_mqtt() -> None:
    seen: list[str] = []

    async def talk(client: mqtt.Client) -> None:
        await client.greet()
        for _ in range(3):
            one = await client.published()
            seen.append(one.topic)
            client.acknowledge(one.id, 0x10 if one.topic == "orders/eu" else 0)
        await client.silence()

    async with mqtt.peer(talk) as port, speaking(Mqtt) as broker:
        endpoint = mqtt.endpoint(port, "orders", allow_overrides={"topic": ["orders/eu", "orders/us"]})
        wanted = [wanting("topic", name) for name in ("orders/eu", "orders/us", "secret", "orders")]
        found = list(await broker.deliver_many(wanted, endpoint))
        kind, reason = failed(found.pop(2))
        assert kind == "message"
        assert "allow_overrides does not list it" in reason
        said = [completed(outcome) for outcome in found]
        assert [(one["topic"], one["reason_code"]) for one in said] == [
            ("orders/eu", 16),
            ("orders/us", 0),
            ("orders", 0),
        ]
    assert seen == ["orders/eu", "orders/us", "orders"]


@in_loop
async def test_a_message_chooses_its_routing_key_of_amqp() -> None:
    seen: list[str] = []

    async def talk(line: amqp.Line) -> None:
        await line.greet()
        seen.extend(one.method.routing_key for one in await line.messages(2))
        line.ack(2, multiple=True)
        await line.end()

    async with amqp.peer(talk) as port, speaking(Amqp) as broker:
        endpoint = amqp.amqp_endpoint(port, allow_overrides={"routing_key": ["orders.eu"]})
        wanted = [wanting("routing_key", name) for name in ("orders.eu", "secret")]
        found = await broker.deliver_many([*wanted, message()], endpoint)
        assert failed(found[1])[0] == "message"
        assert [completed(found[n])["delivery_tag"] for n in (0, 2)] == [1, 2]
    assert seen == ["orders.eu", "orders"]
