"""Workers that deliver to MQTT: from a send to a subscriber, and through faults."""

from __future__ import annotations

import asyncio
from collections import Counter

import psycopg

import menzil
from menzil import Worker
from tests.brokers.bodies import conn, create, deliver, make_and_test, one, rotate_password, until
from tests.brokers.mqtt.peer import Client, peer
from tests.brokers.mqtt.servers import Mosquitto, NatsMqtt
from tests.brokers.mqtt.subscriber import Subscriber, user_properties
from tests.brokers.stage import fresh, in_loop
from tests.telemetry.sdk import installed, traceparent

__all__ = ["conn"]  # a fixture


def test_what_is_sent_arrives_at_nats_in_batches(db: str, conn: psycopg.Connection, nats_mqtt: NatsMqtt) -> None:
    topic = fresh("orders/")
    subscriber = Subscriber(nats_mqtt.mqtt_port, topic, "3.1.1")
    config = {"host": "127.0.0.1", "port": nats_mqtt.mqtt_port, "topic": topic, "version": "3.1.1"}
    answers = deliver(db, conn, "mqtt", config)
    assert sorted(int(found.payload) for found in subscriber.read()) == list(range(1000))
    assert {(answer["topic"], answer["qos"]) for answer in answers} == {(topic, 1)}
    assert {frozenset(answer) for answer in answers} == {frozenset({"topic", "qos", "duration_ms"})}


def test_each_message_of_a_batch_carries_its_own_span(db: str, mosquitto: Mosquitto) -> None:
    """Also those that are written only when others are acknowledged."""
    topic = fresh("orders/")
    subscriber = Subscriber(mosquitto.port, topic, "5")
    with installed() as sdk, menzil.Menzil(db) as mq:
        mq.set_setting("broker_allowed_networks", "127.0.0.0/8")
        config = {"host": "127.0.0.1", "port": mosquitto.port, "topic": topic, "inflight": 2}
        mq.create_endpoint("broker", "mqtt", config)
        mq.send_batch("broker", list(range(6)))
        assert Worker(db, janitors=False).run(once=True).delivered == 6
        spans = {span.attributes["messaging.message.id"]: traceparent(span) for span in sdk.spans("process broker")}
    assert len(spans) == 6
    read = [user_properties(found) for found in subscriber.read()]
    assert {found["menzil-id"].split("_")[1]: found["traceparent"] for found in read} == spans


@in_loop
async def test_a_rotated_password_makes_no_dead_letters(db: str, conn: psycopg.Connection) -> None:
    old = 'authorization { user: "shop", password: "canary-old" }'
    with NatsMqtt(old) as server:
        auth = {"username": "shop", "password": "canary-old"}
        subscriber = Subscriber(server.mqtt_port, "s", "3.1.1", **auth)
        config = {"host": "127.0.0.1", "port": server.mqtt_port, "topic": "s", "version": "3.1.1"}

        async def rotate() -> None:
            server.reload(old.replace("canary-old", "canary-new"))  # and the server throws out who used the old one

        new = auth | {"password": "canary-new"}
        before, after = config | {"auth": auth}, config | {"auth": new}
        await rotate_password(db, conn, "mqtt", before=before, after=after, rotate=rotate)
        subscriber.login = new
        assert {int(found.payload) for found in await subscriber.all()} == set(range(1001))


@in_loop
async def test_a_refused_message_is_the_only_dead_letter(db: str, conn: psycopg.Connection) -> None:
    """A server of 3.1.1 closes the connection at one message of 200; retries of the others are not used up."""
    seen: Counter[int] = Counter()

    async def talk(client: Client) -> None:
        await client.greet()
        while True:
            found = await client.published()
            if found.payload == b"66":
                client.writer.transport.abort()
                return
            seen[int(found.payload)] += 1
            client.acknowledge(found.id)

    async with peer(talk) as port:
        config = {"host": "127.0.0.1", "port": port, "topic": "s", "version": "3.1.1"}
        create(conn, "broker", "mqtt", config)
        conn.execute("select menzil.set_setting('circuit_breaker_threshold', '1000')")
        worker = Worker(db, janitors=False)
        serving = asyncio.create_task(worker.serve())
        with menzil.Menzil(db) as mq:
            mq.send_batch("broker", list(range(200)))
            await until(lambda: len(seen) == 199, "the others")
            mq.send_batch("broker", list(range(200, 210)))
            await until(lambda: one(conn, "select count(*) from menzil.dlq") == 1, "the dead letter")
            await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the rest")
        worker.stop()
        await serving
    assert set(seen) == set(range(210)) - {66}
    assert one(conn, "select payload from menzil.dlq") == 66


def test_an_endpoint_of_mqtt_is_made_and_tested(db: str, mosquitto: Mosquitto) -> None:
    topic = fresh("orders/")
    config = {"host": "127.0.0.1", "port": mosquitto.port, "topic": topic}
    said = make_and_test(db, "mqtt", config, f"mqtt://127.0.0.1:{mosquitto.port}/{topic}")
    assert f"{topic} QoS 1" in said
    assert "no client subscribes" in said
