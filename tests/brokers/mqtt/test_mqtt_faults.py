"""Servers of MQTT that die, freeze or fall silent: what was acknowledged is there, in order, and under one id."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from menzil.deliver.mqtt import Mqtt
from tests.brokers.mqtt.peer import endpoint
from tests.brokers.mqtt.servers import Mosquitto, NatsMqtt
from tests.brokers.mqtt.subscriber import Subscriber, user_properties
from tests.brokers.relay import Relay
from tests.brokers.stage import completed, failed, fresh, in_loop, message, speaking
from tests.brokers.test_faults import DEADLINE, FAULTS, Story, check, kill, live_through

Fault = Callable[..., Awaitable[object]]


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("fault", FAULTS)
@in_loop
async def test_a_session_of_nats_gets_what_was_acknowledged(fault: Fault, qos: int) -> None:
    with NatsMqtt() as server:
        subscriber = Subscriber(server.mqtt_port, "s", "3.1.1")
        async with Relay(server.mqtt_port) as relay, speaking(Mqtt) as broker:
            config = {"version": "3.1.1", "qos": qos, "cloudevents": {"mode": "structured"}}
            story = Story(broker, endpoint(relay.port, "s", timeout_seconds=DEADLINE, **config))
            await live_through(story, server, relay, fault)
        found = [json.loads(one.payload) for one in await subscriber.all(qos)]
        check(story, [(one["partitionkey"], one["id"]) for one in found], once=False)


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault is not kill])
@in_loop
async def test_a_session_of_mosquitto_gets_what_was_acknowledged(fault: Fault, qos: int, has_mosquitto: None) -> None:
    """A kill -9 is not among the faults: it takes all that Mosquitto has not saved, and the documentation says so."""
    with Mosquitto() as server:
        subscriber = Subscriber(server.port, "s", "5")
        async with Relay(server.port) as relay, speaking(Mqtt) as broker:
            story = Story(broker, endpoint(relay.port, "s", timeout_seconds=DEADLINE, qos=qos))
            await live_through(story, server, relay, fault)
        found = [user_properties(one) for one in await subscriber.all(qos)]
        check(story, [(one["menzil-key"], one["menzil-id"]) for one in found], once=False)


@in_loop
async def test_a_puback_of_mosquitto_is_no_promise_beyond_the_process(has_mosquitto: None) -> None:
    """What the documentation warns of. When this fails, Mosquitto has become better, and the warning can go."""
    with Mosquitto() as server:
        Subscriber(server.port, "s", "5")
        async with speaking(Mqtt) as broker:
            completed(await broker.deliver(message(), endpoint(server.port, "s")))
        server.kill()
        server.start()
        again = Subscriber(server.port, "s", "5")
        assert await again.all() == []


@pytest.fixture(params=["nats", "mosquitto"])
def where(request: pytest.FixtureRequest) -> tuple[int, str]:
    """The port of a server, and the version that it speaks."""
    if request.param == "nats":
        return request.getfixturevalue("nats_mqtt").mqtt_port, "3.1.1"
    return request.getfixturevalue("mosquitto").mqtt_port, "5"


@in_loop
async def test_bytes_of_a_connection_that_was_given_up_do_not_arrive(where: tuple[int, str]) -> None:
    port, version = where
    topic = fresh("s")
    subscriber = Subscriber(port, topic, version)
    async with Relay(port) as relay, speaking(Mqtt) as broker:
        to = endpoint(relay.port, topic, version=version, timeout_seconds=3)
        first, second = message(1, ordering_key="k"), message(2, ordering_key="k")
        completed(await broker.deliver(message(0, ordering_key="k"), to))
        relay.hold()
        assert failed(await broker.deliver(first, to))[0] == "unknown"
        completed(await broker.deliver(first, to))
        completed(await broker.deliver(second, to))
        assert relay.connections == 2
        relay.release()
        assert [one.payload for one in await subscriber.all()] == [b"0", b"1", b"2"]


@in_loop
async def test_every_connection_that_was_given_up_is_replaced_before_anything_is_sent(where: tuple[int, str]) -> None:
    """Two connections hang. The message of the second is tried again on whichever comes first."""
    port, version = where
    topic = fresh("s")
    subscriber = Subscriber(port, topic, version)
    async with Relay(port) as relay, speaking(Mqtt) as broker:
        to = endpoint(relay.port, topic, version=version, timeout_seconds=3)
        one, two, three = message(1, ordering_key="a"), message(2, ordering_key="b"), message(3, ordering_key="b")
        for outcome in await asyncio.gather(broker.deliver(message(8), to), broker.deliver(message(9), to)):
            completed(outcome)
        assert relay.connections == 2
        relay.hold()
        for outcome in await asyncio.gather(broker.deliver(one, to), broker.deliver(two, to)):
            assert failed(outcome)[0] == "unknown"
        completed(await broker.deliver(two, to))
        completed(await broker.deliver(three, to))
        assert relay.connections == 4
        relay.release()
        assert [found.payload for found in await subscriber.all()][2:] == [b"2", b"3"]
