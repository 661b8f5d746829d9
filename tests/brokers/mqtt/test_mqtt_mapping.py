"""Every row of the mapping, as paho-mqtt reads it from Mosquitto and from NATS."""

from __future__ import annotations

import json

import pytest

from menzil.deliver.mqtt import Mqtt
from menzil.model.outcome import Complete
from tests.brokers.mqtt.peer import endpoint
from tests.brokers.mqtt.servers import Mosquitto, NatsMqtt
from tests.brokers.mqtt.subscriber import Subscriber, user_properties
from tests.brokers.stage import completed, failed, fresh, in_loop, message, speaking
from tests.brokers.test_mapping import CORRELATION, EVENT, TRACE, full


@pytest.mark.parametrize("qos", [1, 2])
@in_loop
async def test_paho_reads_every_property(mosquitto: Mosquitto, qos: int) -> None:
    topic, sent = fresh("orders/"), full()
    subscriber = Subscriber(mosquitto.port, topic, "5")
    async with speaking(Mqtt) as broker:
        said = completed(await broker.deliver(sent, endpoint(mosquitto.port, topic, qos=qos, headers={"X-Shop": "1"})))
    assert said.pop("duration_ms") >= 0
    assert said == {"topic": topic, "qos": qos, "reason_code": 0, "correlation_id": str(CORRELATION)}
    (found,) = await subscriber.all()
    assert (found.topic, found.qos, found.retain) == (topic, qos, False)
    assert json.loads(found.payload) == {"order": 42}
    assert found.properties.ContentType == "application/vnd.shop+json"
    assert found.properties.CorrelationData == str(CORRELATION).encode()
    assert 80 < found.properties.MessageExpiryInterval <= 100
    assert user_properties(found) == {
        "menzil-id": sent.wire_id,
        "menzil-type": "order.paid",
        "menzil-attempt": "3",
        "menzil-key": "Müşteri 7",
        "x-tenant": "acme",
        "x-city": "İzmir",
        "x-shop": "1",
        "traceparent": TRACE,
        "tracestate": "a=b",
    }


@in_loop
async def test_paho_reads_the_least_that_a_message_has(mosquitto: Mosquitto) -> None:
    topic, sent = fresh("orders/"), message(content=b"")
    subscriber = Subscriber(mosquitto.port, topic, "5")
    async with speaking(Mqtt) as broker:
        completed(await broker.deliver(sent, endpoint(mosquitto.port, topic)))
    (found,) = await subscriber.all()
    assert found.payload == b""
    assert found.properties.ContentType == "application/octet-stream"
    assert set(found.properties.json()) == {"ContentType", "UserProperty"}
    assert user_properties(found) == {"menzil-id": sent.wire_id, "menzil-type": "billing", "menzil-attempt": "1"}


@in_loop
async def test_a_retained_message_waits_for_its_first_subscriber(mosquitto: Mosquitto) -> None:
    topic = fresh("orders/")
    async with speaking(Mqtt) as broker:
        for number in range(2):
            completed(await broker.deliver(message(number), endpoint(mosquitto.port, topic, retain=True)))
    found = Subscriber(mosquitto.port, topic, "5").read()
    # It gets the last one, and again when it subscribes again.
    assert {(one.payload, one.retain) for one in found} == {(b"1", True)}


@in_loop
async def test_cloudevents_of_mqtt_5(mosquitto: Mosquitto) -> None:
    topic, sent = fresh("orders/"), full()
    subscriber = Subscriber(mosquitto.port, topic, "5")
    async with speaking(Mqtt) as broker:
        for mode in ("binary", "structured"):
            config = {"cloudevents": {"mode": mode, "source": "/shop"}}
            completed(await broker.deliver(sent, endpoint(mosquitto.port, topic, **config)))
    binary, structured = await subscriber.all()
    wanted = EVENT | {"id": sent.wire_id}
    assert {name: value for name, value in user_properties(binary).items() if name in wanted} == wanted
    assert binary.properties.ContentType == "application/vnd.shop+json"
    assert json.loads(binary.payload) == {"order": 42}
    assert structured.properties.ContentType == "application/cloudevents+json"
    assert json.loads(structured.payload)["data"] == {"order": 42}
    assert not {"specversion", "source"} & set(user_properties(structured))


@pytest.mark.parametrize("qos", [1, 2])
@in_loop
async def test_mqtt_3_carries_the_payload_and_a_structured_event_the_rest(nats_mqtt: NatsMqtt, qos: int) -> None:
    topic, sent = fresh("orders/"), full()
    subscriber = Subscriber(nats_mqtt.mqtt_port, topic, "3.1.1")
    async with speaking(Mqtt) as broker:
        to = endpoint(nats_mqtt.mqtt_port, topic, version="3.1.1", qos=qos)
        said = completed(await broker.deliver(sent, to))
        config = {"version": "3.1.1", "qos": qos, "cloudevents": {"mode": "structured", "source": "/shop"}}
        completed(await broker.deliver(sent, endpoint(nats_mqtt.mqtt_port, topic, **config)))
    assert "reason_code" not in said
    plain, structured = await subscriber.all(qos)
    assert json.loads(plain.payload) == {"order": 42}
    document = json.loads(structured.payload)
    assert document == EVENT | {
        "id": sent.wire_id,
        "datacontenttype": "application/vnd.shop+json",
        "data": {"order": 42},
    }


@in_loop
async def test_texts_that_no_server_takes_make_dead_letters_and_harm_no_other(mosquitto: Mosquitto) -> None:
    topic = fresh("orders/")
    subscriber = Subscriber(mosquitto.port, topic, "5")
    async with speaking(Mqtt) as broker:
        batch = [message(1), message(2, ordering_key="two\nlines"), message(3, ordering_key="x" * 70000), message(4)]
        found = await broker.deliver_many(batch, endpoint(mosquitto.port, topic))
        completed(found[0])
        completed(found[3])
        assert [failed(outcome)[0] for outcome in found[1:3]] == ["message", "message"]
        assert "two" not in failed(found[1])[1]
    assert [one.payload for one in await subscriber.all()] == [b"1", b"4"]


@in_loop
async def test_nats_says_that_it_does_not_speak_mqtt_5(nats_mqtt: NatsMqtt) -> None:
    async with speaking(Mqtt) as broker:
        kind, reason = failed(await broker.deliver(message(), endpoint(nats_mqtt.mqtt_port)))
        assert kind == "endpoint"
        assert 'set version to "3.1.1"' in reason


@in_loop
async def test_a_message_that_nats_refuses_harms_no_other() -> None:
    """NATS closes the connection at a message that is too large for it."""
    with NatsMqtt("max_payload: 2000") as server:
        subscriber = Subscriber(server.mqtt_port, "s", "3.1.1")
        async with speaking(Mqtt) as broker:
            to = endpoint(server.mqtt_port, "s", version="3.1.1")
            large, rest = message("x" * 3000), [message(n) for n in range(20)]
            left, dead = [large, *rest], None
            for _ in range(30):
                outcomes = await broker.deliver_many(left, to)
                dead = next((failed(o)[0] for m, o in zip(left, outcomes, strict=True) if m is large), None)
                if dead == "message":
                    break
                left = [
                    large,
                    *(m for m, o in zip(left, outcomes, strict=True) if m is not large and not isinstance(o, Complete)),
                ]
                left += [message(99)]
            assert dead == "message"
        found = [int(one.payload) for one in await subscriber.all()]
        assert set(range(20)) <= set(found)
