"""What a server of MQTT answers, and what it means for a message."""

from __future__ import annotations

import asyncio

import pytest

from menzil.deliver.mqtt import Mqtt
from menzil.model.outcome import Complete
from tests.brokers.mqtt.peer import Client, Login, endpoint, peer
from tests.brokers.stage import completed, failed, in_loop, message, speaking

CODES = {
    0x80: "endpoint", 0x83: "endpoint", 0x87: "endpoint", 0x97: "endpoint", 0x91: "unknown",
    0x90: "message", 0x95: "message", 0x99: "message", 0x8A: "endpoint",
}  # fmt: skip


@pytest.mark.parametrize("qos", [1, 2])
@in_loop
async def test_each_code_blames_the_message_the_endpoint_or_no_one(qos: int) -> None:
    async def talk(client: Client) -> None:
        await client.greet()
        for code in (0x00, *CODES):
            found = await client.published()
            assert found.qos == qos
            client.acknowledge(found.id, code, kind=0x40 if qos == 1 else 0x50, reason="because" if code else None)
            if qos == 2 and code < 0x80:
                assert await client.released() == (found.id, 0)
                client.acknowledge(found.id, kind=0x70)
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        to = endpoint(port, qos=qos)
        said = completed(await broker.deliver(message(), to))
        assert said.pop("duration_ms") >= 0
        assert said == {"topic": "orders", "qos": qos, "reason_code": 0}
        for code, kind in CODES.items():
            found, reason = failed(await broker.deliver(message(), to))
            assert found == kind, hex(code)
            assert f"(0x{code:02X}): because" in reason


@pytest.mark.parametrize(
    ("version", "codes"), [("5", [0x80, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x9F]), ("3.1.1", [1, 2, 3, 4, 5])]
)
@in_loop
async def test_a_server_that_lets_no_one_in_blames_the_endpoint(version: str, codes: list[int]) -> None:
    left = list(codes)

    async def talk(client: Client) -> None:
        await client.greet(left.pop(0))
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        for code in codes:
            kind, reason = failed(await broker.deliver(message(), endpoint(port, version=version)))
            assert kind == "endpoint"
            assert "refused the connection" in reason
            assert (f"0x{code:02X}" if version == "5" else f"({code})") in reason


@in_loop
async def test_a_server_that_speaks_only_the_older_version_says_so() -> None:
    async def talk(client: Client) -> None:
        await client.packet()
        client.writer.write(b"\x20\x02\x00\x01")

    async with peer(talk) as port, speaking(Mqtt) as broker:
        kind, reason = failed(await broker.deliver(message(), endpoint(port)))
        assert kind == "endpoint"
        assert 'set version to "3.1.1"' in reason


@in_loop
async def test_a_message_without_subscribers_is_delivered_or_tried_again() -> None:
    async def talk(client: Client) -> None:
        await client.greet()
        while True:
            client.acknowledge((await client.published()).id, 0x10)

    async with peer(talk) as port, speaking(Mqtt) as broker:
        assert completed(await broker.deliver(message(), endpoint(port)))["reason_code"] == 0x10
        kind, reason = failed(await broker.deliver(message(), endpoint(port, no_subscribers="retry")))
        assert kind == "endpoint"
        assert "No client subscribes" in reason


@in_loop
async def test_the_login_is_sent_and_the_server_may_take_less_than_is_wanted() -> None:
    logins: list[Login] = []

    async def talk(client: Client) -> None:
        logins.append(await client.greet(0, b"\x24\x01\x25\x00"))
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        auth = {"username": "shop", "password": "canary-word"}
        to = endpoint(port, auth=auth, qos=2, keepalive_seconds=7)
        assert "no more than QoS 1" in failed(await broker.deliver(message(), to))[1]
        assert "retains no messages" in failed(await broker.deliver(message(), endpoint(port, retain=True)))[1]
    first = logins[0]
    assert (first.version, first.clean, first.keepalive) == (5, True, 7)
    assert (first.username, first.password) == ("shop", "canary-word")
    assert first.client_id.startswith("menzil-billing-")
    assert logins[1].username is None


@in_loop
async def test_a_message_of_qos_0_is_delivered_when_the_server_answers_what_came_after_it() -> None:
    async def talk(client: Client) -> None:
        await client.greet()
        if client.login and client.login.client_id.startswith("deaf"):
            await client.reader.readexactly(5)
            return
        for _ in range(3):
            found = await client.published()
            assert (found.qos, found.id) == (0, 0)
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        batch = [message(n) for n in range(3)]
        for outcome in await broker.deliver_many(batch, endpoint(port, qos=0, allow_loss=True)):
            assert completed(outcome)["qos"] == 0
        found = await broker.deliver_many(batch, endpoint(port, qos=0, allow_loss=True, client_id="deaf"))
        assert {failed(outcome)[0] for outcome in found} == {"unknown"}


@in_loop
async def test_no_more_messages_are_under_way_than_the_server_takes() -> None:
    seen: list[int] = []

    async def talk(client: Client) -> None:
        await client.greet(0, b"\x21\x00\x05")  # receive maximum
        waiting: list[int] = []
        for left in range(20, 0, -1):
            waiting.append((await client.published()).id)
            seen.append(len(waiting))
            if len(waiting) == 5 or left == 1:
                # Nothing more comes before one is acknowledged.
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(client.packet(), 0.05)
                for number in reversed(waiting):
                    client.acknowledge(number)
                waiting.clear()
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        found = await broker.deliver_many([message(n) for n in range(20)], endpoint(port, inflight=50))
        assert all(isinstance(outcome, Complete) for outcome in found)
    assert max(seen) == 5


@in_loop
async def test_a_batch_is_one_write() -> None:
    reads: list[int] = []

    async def talk(client: Client) -> None:
        await client.greet()
        await asyncio.sleep(0)
        first = await client.reader.read(1 << 20)
        reads.append(first.count(b"menzil-id"))
        await client.reader.read()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        await broker.deliver_many([message(n) for n in range(50)], endpoint(port, timeout_seconds=0.3))
    assert reads == [50]
