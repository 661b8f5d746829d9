"""Messages of MQTT become messages of the queue."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import paho.mqtt.client as paho
import psycopg
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from menzil.bridge.looking import looked_at
from menzil.bridge.mqtt import MqttSource, matches
from menzil.bridge.source import SourceError
from menzil.deliver.mqtt import Mqtt
from tests.bridge.stage import once, one, running, until, waiting
from tests.brokers.mqtt.conftest import has_mosquitto, mosquitto, nats_mqtt
from tests.brokers.mqtt.peer import Client, endpoint, peer
from tests.brokers.mqtt.servers import Mosquitto, NatsMqtt
from tests.brokers.stage import completed, fresh, in_loop, message, speaking

__all__ = ["has_mosquitto", "mosquitto", "nats_mqtt"]  # fixtures


def create(conn: psycopg.Connection, port: int, topic: str, **config: Any) -> None:
    whole = json.dumps({"host": "127.0.0.1", "port": port, "topic": topic, "client_id": fresh("bridge"), **config})
    conn.execute("select menzil.bridge_create('b', 'mqtt', %s::jsonb, 'work')", (whole,))


def publish(port: int, topic: str, payloads: Iterator[bytes] | list[bytes], qos: int = 1) -> None:
    client = paho.Client(CallbackAPIVersion.VERSION2, fresh("writer"), protocol=paho.MQTTv311)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for payload in payloads:
        client.publish(topic, payload, qos).wait_for_publish(50)
    client.disconnect()
    client.loop_stop()


@pytest.mark.parametrize("qos", [1, 2])
@in_loop
async def test_what_comes_while_no_bridge_runs_is_taken_later(
    db: str, conn: psycopg.Connection, nats_mqtt: NatsMqtt, qos: int
) -> None:
    base = fresh("shop")
    create(conn, nats_mqtt.mqtt_port, f"{base}/+/orders", version="3.1.1", batch=7)
    assert (await once(db, "b")).taken == 0  # the session begins here
    await asyncio.to_thread(publish, nats_mqtt.mqtt_port, f"{base}/1/orders", [b"%d" % n for n in range(30)], qos)
    await asyncio.to_thread(publish, nats_mqtt.mqtt_port, f"{base}/1/other", [b"99"], qos)
    assert (await once(db, "b")).taken == 30
    assert (await once(db, "b")).taken == 0
    assert waiting(conn) == list(range(30))
    about = one(conn, "select metadata -> 'bridge' from menzil.queue limit 1")
    assert about == {"name": "b", "partition": f"{base}/+/orders", "subject": f"{base}/1/orders"}


@in_loop
async def test_what_menzil_published_comes_back_as_it_was_and_once(
    db: str, conn: psycopg.Connection, mosquitto: Mosquitto
) -> None:
    topic = fresh("shop/")
    create(conn, mosquitto.port, topic)
    await once(db, "b")
    uuid = UUID("11111111-2222-3333-4444-555555555555")
    sent = message({"order": 42}, ordering_key="Müşteri 7", correlation_id=uuid, headers={"X-City": "İzmir"})
    async with speaking(Mqtt) as broker:
        for _ in range(3):
            completed(await broker.deliver(sent, endpoint(mosquitto.port, topic)))
    assert (await once(db, "b")).taken == 3
    row = one(conn, "select payload, ordering_key, correlation_id, headers from menzil.queue")
    assert row == ({"order": 42}, "Müşteri 7", uuid, {"x-city": "İzmir"})
    assert one(conn, "select count(*) from menzil.queue") == 1


@in_loop
async def test_a_body_that_is_no_json_becomes_a_dead_letter_and_blocks_nothing(
    db: str, conn: psycopg.Connection, nats_mqtt: NatsMqtt
) -> None:
    topic = fresh("shop/")
    create(conn, nats_mqtt.mqtt_port, topic, version="3.1.1")
    await once(db, "b")
    await asyncio.to_thread(publish, nats_mqtt.mqtt_port, topic, [b"1", b"{", b"", b"\xff", b"2"])
    progress = await once(db, "b")
    assert (progress.taken, progress.refused) == (2, 3)
    assert waiting(conn) == [1, 2]
    assert one(conn, "select count(*) from menzil.dlq") == 3
    assert (await once(db, "b")).refused == 0


@in_loop
async def test_a_server_that_dies_and_comes_back_loses_nothing(db: str, conn: psycopg.Connection) -> None:
    with NatsMqtt() as server:
        create(conn, server.mqtt_port, "s", version="3.1.1")
        await once(db, "b")
        async with running(db, "b") as runner:
            await asyncio.to_thread(publish, server.mqtt_port, "s", [b"%d" % n for n in range(20)])
            await until(lambda: one(conn, "select count(*) from menzil.queue") == 20, "the first ones")
            server.kill()
            await until(lambda: runner.progress.error is not None, "the bridge to notice")
            server.start()
            await asyncio.to_thread(publish, server.mqtt_port, "s", [b"%d" % n for n in range(20, 40)])
            await until(lambda: one(conn, "select count(distinct payload) from menzil.queue") == 40, "the others")
    found = waiting(conn)
    assert list(dict.fromkeys(found)) == list(range(40))


def packet(number: int, body: bytes, *, id: str | None = None, again: bool = False, retain: bool = False) -> bytes:
    """A PUBLISH of MQTT 5 as a server sends it."""
    pairs = b""
    if id is not None:
        for text in ("menzil-id", id):
            pairs += struct.pack(">H", len(text)) + text.encode()
        pairs = b"\x26" + pairs
    rest = b"\x00\x01s" + struct.pack(">H", number) + bytes([len(pairs)]) + pairs + body
    return bytes([0x32 | (8 if again else 0) | retain, len(rest)]) + rest


def length(size: int) -> bytes:
    """A length as MQTT writes it."""
    found = b""
    while size >= 128:
        found, size = found + bytes([size & 127 | 128]), size >> 7
    return found + bytes([size])


async def subscribed(client: Client, code: int = 1) -> None:
    login = await client.greet()
    assert login.clean is False
    head, body = await client.packet()
    assert head == 0x82
    assert body[-1] == 0x11  # QoS 1, and retained messages only when the subscription is new
    client.writer.write(bytes([0x90, 4]) + body[:2] + bytes([0, code]))


@in_loop
async def test_a_message_is_acknowledged_after_the_commit(db: str, conn: psycopg.Connection) -> None:
    free = asyncio.Event()
    acked: list[int] = []

    async def talk(client: Client) -> None:
        await subscribed(client)
        client.writer.write(packet(7, b"1") + packet(9, b"2"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.packet(), 1)
        free.set()
        for _ in range(2):
            head, body = await client.packet()
            assert head == 0x40
            acked.append(int.from_bytes(body[:2], "big"))
        await client.silence()

    async with peer(talk) as port:
        create(conn, port, "s")
        with psycopg.connect(db) as other:
            other.execute("lock table menzil.bridge_position in share mode")
            async with running(db, "b"):
                await asyncio.wait_for(free.wait(), 50)
                assert one(conn, "select count(*) from menzil.queue") == 0
                other.rollback()
                await until(lambda: acked == [7, 9], "the acknowledgements")
                assert waiting(conn) == [1, 2]


@pytest.mark.parametrize(("id", "count"), [("msg_1_a", 1), (None, 2)])
@in_loop
async def test_a_message_that_comes_again_is_known_by_its_id(
    db: str, conn: psycopg.Connection, id: str | None, count: int
) -> None:
    """The connection ends between the commit and the acknowledgement. Without an id it becomes two messages."""
    connections: list[int] = []
    done = asyncio.Event()

    async def talk(client: Client) -> None:
        await subscribed(client)
        connections.append(1)
        client.writer.write(packet(7, b"1", id=id, again=len(connections) > 1))
        head, _ = await client.packet()
        assert head == 0x40
        if len(connections) == 1:
            return  # and the acknowledgement is forgotten
        done.set()
        await client.silence()

    async with peer(talk) as port:
        create(conn, port, "s")
        async with running(db, "b"):
            await asyncio.wait_for(done.wait(), 50)
    assert waiting(conn) == [1] * count


@in_loop
async def test_what_waits_here_when_the_connection_ends_is_left_to_the_server(
    db: str, conn: psycopg.Connection
) -> None:
    """The server sends it again, so it would come in twice. What has QoS 0 never comes again."""
    read = asyncio.Event()

    async def talk(client: Client) -> None:
        await subscribed(client)
        lossy = b"\x00\x01s\x00" + b"3"
        client.writer.write(packet(7, b"1") + packet(9, b"2") + bytes([0x30, len(lossy)]) + lossy)
        await asyncio.wait_for(read.wait(), 50)

    async with peer(talk) as port:
        create(conn, port, "s")
        async with looked_at(db, "b") as (_, source):
            assert isinstance(source, MqttSource)
            first = await source.read(1, 50)
            assert first is not None
            assert [record.body for record in first.records] == [b"1"]
            connection = source._open
            await until(lambda: len(connection.came) == 2, "the others")
            read.set()
            await until(lambda: not connection.is_open, "the end of the connection")
            rest = await source.read(5, 50)
            assert rest is not None
            assert [record.body for record in rest.records] == [b"3"]
            with pytest.raises(SourceError):
                await source.read(5, 50)


@in_loop
async def test_correlation_data_that_is_no_text_is_kept_as_digits(db: str, conn: psycopg.Connection) -> None:
    done = asyncio.Event()

    async def talk(client: Client) -> None:
        await subscribed(client)
        rest = b"\x00\x01s\x00\x07" + b"\x05\x09\x00\x02\xff\x01" + b"1"
        client.writer.write(bytes([0x32, len(rest)]) + rest)
        await client.packet()
        done.set()
        await client.silence()

    async with peer(talk) as port:
        create(conn, port, "s")
        async with running(db, "b"):
            await asyncio.wait_for(done.wait(), 50)
    assert one(conn, "select metadata #>> '{bridge,correlation_id}' from menzil.queue") == "0xff01"


@in_loop
async def test_messages_that_are_large_wait_at_the_server(db: str, conn: psycopg.Connection) -> None:
    """A server counts messages and not bytes: 64 MB of them fit into what it may send ahead."""
    sent: list[int] = []
    acked: list[int] = []

    async def talk(client: Client) -> None:
        await subscribed(client)
        answers = asyncio.create_task(answer(client))
        try:
            for number in range(1, 65):
                rest = b"\x00\x01s" + struct.pack(">H", number) + b'\x00"' + b"x" * 1_000_000 + b'"'
                client.writer.write(b"\x32" + length(len(rest)) + rest)
                await client.writer.drain()
                sent.append(number)
            await answers
        finally:
            answers.cancel()

    async def answer(client: Client) -> None:
        while True:
            head, body = await client.packet()
            if head == 0xC0:
                client.writer.write(b"\xd0\x00")  # behind the messages
            elif head == 0x40:
                acked.append(int.from_bytes(body[:2], "big"))

    async with peer(talk) as port:
        conn.execute("select menzil.channel_set('work', p_max_size => 2)")
        create(conn, port, "s", keepalive_seconds=5)
        async with running(db, "b") as runner:
            await until(lambda: runner.progress.error is not None and len(sent) > 16, "a full channel")
            await asyncio.sleep(8)  # more than two pings, whose answers wait behind the messages
            assert len(sent) < 40  # 16 MB here, and what the buffers of both sockets take
            assert one(conn, "select count(*) from menzil.queue") == 2
            conn.execute("select menzil.channel_set('work', p_max_size => 100)")
            await until(lambda: acked == list(range(1, 65)), "all of them, over the only connection that there is")
    assert one(conn, "select count(*) from menzil.queue") == 64


@in_loop
async def test_a_session_that_the_server_lost_is_said(
    db: str, conn: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(client: Client) -> None:
        await subscribed(client)  # its CONNACK says that there was no session
        client.writer.write(packet(7, b"1", id="m"))
        await client.silence()

    async with peer(talk) as port:
        create(conn, port, "s")
        with caplog.at_level("WARNING", "menzil.bridge"):
            assert (await once(db, "b")).taken == 1
            assert "kept no session" not in caplog.text
            await once(db, "b")
    assert "kept no session" in caplog.text


@pytest.mark.parametrize(("code", "words"), [(0x87, "not authorized"), (0x00, "QoS 0 only")])
@in_loop
async def test_a_subscription_that_is_refused_is_said(db: str, conn: psycopg.Connection, code: int, words: str) -> None:
    async def talk(client: Client) -> None:
        await subscribed(client, code)
        await client.silence()

    async with peer(talk) as port:
        create(conn, port, "s")
        with pytest.raises(SourceError, match=words):
            await once(db, "b")


def test_filters() -> None:
    good = [
        ("a/b", "a/b"),
        ("a/+", "a/b"),
        ("#", "a/b"),
        ("a/#", "a"),
        ("a/#", "a/b/c"),
        ("+/+", "a/b"),
        ("$share/g/a/+", "a/b"),
    ]
    bad = [("a/b", "a"), ("a/+", "a"), ("a/+", "a/b/c"), ("b/#", "a/b"), ("a", "a/b")]
    assert all(matches(*pair) for pair in good)
    assert not any(matches(*pair) for pair in bad)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"topic": "a/#/b"}, "topic is not a filter"),
        ({"topic": "a+"}, "topic is not a filter"),
        ({"host": None}, "host must be"),
        ({"start": "earliest"}, "'start' is not a key of the config of an mqtt bridge"),
        ({"auth": {"password": "p"}}, "auth.username is needed"),
        ({"session_seconds": 60, "version": "3.1.1"}, "session_seconds goes with version 5"),
    ],
)
def test_bad_configs_are_refused(conn: psycopg.Connection, keys: dict[str, Any], words: str) -> None:
    whole = json.dumps({"host": "broker.example.com", "topic": "shop/#"} | keys)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=words):
        conn.execute("select menzil.bridge_create('b', 'mqtt', %s::jsonb, 'work')", (whole,))
