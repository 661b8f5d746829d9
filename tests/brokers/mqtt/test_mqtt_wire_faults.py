"""Connections of MQTT that break at the worst moment, and answers without a question."""

from __future__ import annotations

import asyncio
import struct

import pytest

from menzil.deliver.mqtt import Mqtt
from menzil.model.outcome import Complete, Defer
from tests.brokers.mqtt.peer import Client, endpoint, peer
from tests.brokers.stage import completed, failed, in_loop, message, speaking


@in_loop
async def test_acknowledgements_count_for_their_own_message_only() -> None:
    async def talk(client: Client) -> None:
        await client.greet()
        ids = [(await client.published()).id for _ in range(4)]
        for number in (0, 77, 65535, ids[3], ids[3], ids[0]):  # unknown ones, out of order, and twice
            client.acknowledge(number)
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        found = await broker.deliver_many([message(n) for n in range(4)], endpoint(port, timeout_seconds=0.5))
        assert [isinstance(outcome, Complete) for outcome in found] == [True, False, False, True]
        assert {failed(outcome)[0] for outcome in found[1:3]} == {"unknown"}


@in_loop
async def test_a_late_acknowledgement_settles_nothing() -> None:
    """Neither one of an earlier batch on this connection, nor one of a connection that was given up."""
    first: list[int] = []
    connections: list[Client] = []

    async def talk(client: Client) -> None:
        await client.greet()
        connections.append(client)
        if len(connections) == 1:
            first.append((await client.published()).id)
            client.acknowledge(first[0])
            await client.published()
            for _ in range(3):
                client.acknowledge(first[0])  # again, in the middle of the next batch
            await client.silence()
        else:
            found = await client.published()
            connections[0].acknowledge(found.id)  # on the old connection
            client.acknowledge(found.id + 1)
            await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        to = endpoint(port, timeout_seconds=0.3)
        completed(await broker.deliver(message(1), to))
        again = message(2)
        assert failed(await broker.deliver(again, to))[0] == "unknown"
        assert failed(await broker.deliver(again, to))[0] == "unknown"
        assert len(connections) == 2


@pytest.mark.parametrize("piece", [b"\x40", b"\x40\x02", b"\x40\x02\x00", b"\x40\x80\x80"])
@pytest.mark.parametrize("reset", [True, False])
@in_loop
async def test_half_a_packet_settles_nothing(piece: bytes, reset: bool) -> None:
    async def talk(client: Client) -> None:
        await client.greet()
        one = (await client.published()).id
        await client.published()
        client.acknowledge(one)
        client.writer.write(piece)
        await client.writer.drain()
        if not reset:
            await client.silence()
        await asyncio.sleep(0)
        client.writer.transport.abort()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        found = await broker.deliver_many([message(1), message(2)], endpoint(port, timeout_seconds=0.5))
        assert failed(found[1])[0] == "unknown"
        if not reset:
            completed(found[0])


@pytest.mark.parametrize(
    "said",
    [
        b"\x20\x03\x00\x00\x00",  # a second CONNACK
        b"\x30\x05\x00\x01a\x00x",  # a message, although nothing is subscribed to
        b"\x70\x02\x00\x01",  # completes what was never received
        b"\x50\x02\x00\x01",  # of QoS 2
        b"\x40\xff\xff\xff\xff\x7f",  # a length without an end
        b"\x40\xff\xff\xff\x7f",  # 256 MB
        b"\x40\x01\x00",  # no packet id
        b"\x40\x04\x00\x01\x80\x05",  # properties that are cut off
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
@in_loop
async def test_nonsense_ends_the_connection_and_settles_nothing(said: bytes) -> None:
    async def talk(client: Client) -> None:
        await client.greet()
        assert (await client.published()).id == 1
        client.writer.write(said)
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        kind, reason = failed(await broker.deliver(message(), endpoint(port, timeout_seconds=60)))
        assert kind == "unknown"
        assert "is not what was asked for" in reason
        assert broker.kept == 0


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\x20",
        b"\x20\x02\x00",
        b"\x40\x02\x00\x01",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x20\x06\x00\x00\x09\x11\x00\x00",
    ],
)
@in_loop
async def test_a_greeting_that_is_none_blames_the_endpoint(said: bytes) -> None:
    async def talk(client: Client) -> None:
        await client.packet()
        client.writer.write(said)
        await client.writer.drain()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        assert failed(await broker.deliver(message(), endpoint(port, connect_timeout_seconds=5)))[0] == "endpoint"


@pytest.mark.parametrize("stage", ["publish", "release"])
@in_loop
async def test_a_message_of_qos_2_is_delivered_when_it_is_completed(stage: str) -> None:
    attempts: list[int] = []

    async def talk(client: Client) -> None:
        await client.greet()
        attempts.append(1)
        found = await client.published()
        if len(attempts) == 1 and stage == "publish":
            client.writer.transport.abort()
            return
        client.acknowledge(found.id, kind=0x50)
        client.acknowledge(found.id, kind=0x50)  # twice: told twice, which does no harm
        assert (await client.released())[0] == found.id
        if len(attempts) == 1:
            client.writer.transport.abort()
            return
        assert (await client.released())[0] == found.id
        client.acknowledge(999, kind=0x50)
        assert await client.released() == (999, 0x92)
        client.acknowledge(found.id, kind=0x70)
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        to, one = endpoint(port, qos=2), message()
        assert failed(await broker.deliver(one, to))[0] == "unknown"
        completed(await broker.deliver(one, to))


@in_loop
async def test_packet_ids_wrap_and_skip_those_under_way() -> None:
    """More messages than there are packet ids, in one connection, one of which is acknowledged last."""
    count, seen = 66_000, [0]

    async def talk(client: Client) -> None:
        await client.greet(0, b"\x21\xff\xff")
        held = (await client.published()).id
        assert held == 1
        under_way = {held}
        rest = count - 1
        while rest:
            take = min(1000, rest)
            ids = [(await client.published()).id for _ in range(take)]
            assert len(set(ids)) == take
            assert not under_way & set(ids)
            assert min(ids) >= 1
            client.writer.write(b"".join(struct.pack(">BBH", 0x40, 2, number) for number in ids))
            rest -= take
            seen[0] += take
        client.acknowledge(held)
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        to = endpoint(port, inflight=1001, timeout_seconds=60)
        found = await broker.deliver_many([message(1) for _ in range(count)], to)
        assert all(isinstance(outcome, Complete) for outcome in found)
    assert seen[0] == count - 1


@in_loop
async def test_payloads_of_no_bytes_and_of_the_most_that_the_server_takes() -> None:
    limit = 2000
    sizes: list[int] = []

    async def talk(client: Client) -> None:
        await client.greet(0, b"\x27" + struct.pack(">I", limit))
        while True:
            found = await client.published()
            sizes.append(found.size + 3)  # its head, and a length of two bytes
            assert len(found.payload) in (0, 1, limit) or found.payload == b"x" * len(found.payload)
            client.acknowledge(found.id)

    async with peer(talk) as port, speaking(Mqtt) as broker:
        to = endpoint(port)
        probe = failed(await broker.deliver(message(content=b"x" * limit), to))
        assert probe[0] == "message"
        head = int(probe[1].split()[3]) - limit
        batch = [
            message(content=b""),
            message(content=b"x" * (limit - head)),
            message(content=b"x" * (limit - head + 1)),
            message(4),
        ]
        found = await broker.deliver_many(batch, to)
        assert [isinstance(outcome, Complete) for outcome in found] == [True, True, False, True]
        kind, reason = failed(found[2])
        assert kind == "message"
        assert f"{limit + 1} bytes" in reason
    assert sizes[1] == limit


@in_loop
async def test_a_disconnect_tells_why() -> None:
    codes = [0x8B, 0x89, 0x8E, 0x98]
    left = list(codes)

    async def talk(client: Client) -> None:
        await client.greet()
        await client.published()
        client.writer.write(bytes([0xE0, 1, left.pop(0)]))
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        to = endpoint(port)
        for code in codes:
            kind, reason = failed(await broker.deliver(message(), to))
            assert kind == "unknown"  # it may have been written
            assert f"0x{code:02X}" in reason
            assert ("same client id" in reason) == (code == 0x8E)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@in_loop
async def test_a_message_at_which_the_server_closes_the_connection_harms_no_other(version: str) -> None:
    """Closing it is the only refusal of 3.1.1. The innocent arrive at the next try, the guilty one ends alone."""

    async def talk(client: Client) -> None:
        await client.greet()
        waiting = []
        while True:
            found = await client.published()
            if found.payload == b'"poison"':
                client.writer.transport.abort()
                return
            waiting.append(found.id)
            if len(waiting) == 1 or found.payload == b"0":
                await asyncio.sleep(0)
            client.acknowledge(found.id)
            await client.writer.drain()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        to = endpoint(port, version=version, inflight=10)
        bad = message("poison")
        open_ = [bad, *(message(n) for n in range(30))]
        failures: dict[int, int] = {}
        ends: dict[int, str] = {}
        for _ in range(40):
            if not open_:
                break
            outcomes = await broker.deliver_many(open_, to)
            for one, outcome in zip(open_, outcomes, strict=True):
                if isinstance(outcome, Complete):
                    ends[one.id] = "completed"
                elif not isinstance(outcome, Defer):
                    failures[one.id] = failures.get(one.id, 0) + 1
                    kind, reason = failed(outcome)
                    if kind == "message":
                        assert one is bad
                        assert "closed the connection twice" in reason
                        ends[one.id] = "dead"
            open_ = [one for one in open_ if one.id not in ends]
            if open_ == [bad]:
                open_.append(message(99))  # the server takes others
        assert not open_
        assert ends.pop(bad.id) == "dead"
        assert set(ends.values()) == {"completed"}
        assert max(count for one, count in failures.items() if one != bad.id) == 1


@in_loop
async def test_a_server_that_takes_nothing_makes_no_dead_letters() -> None:
    async def talk(client: Client) -> None:
        await client.greet()
        await client.published()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        to, one = endpoint(port, version="3.1.1"), message()
        for _ in range(5):
            assert failed(await broker.deliver(one, to))[0] == "unknown"


@in_loop
async def test_a_disconnect_that_blames_the_only_message_makes_it_a_dead_letter() -> None:
    async def talk(client: Client) -> None:
        await client.greet()
        await client.published()
        client.writer.write(b"\xe0\x01\x95")
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        kind, reason = failed(await broker.deliver(message(), endpoint(port)))
        assert kind == "message"
        assert "packet too large" in reason
