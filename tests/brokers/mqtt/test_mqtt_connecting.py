"""Client ids, pings, TLS and logins of MQTT."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
import trustme

from menzil.deliver.mqtt import Mqtt
from tests.brokers.mqtt.peer import GOODBYE, PINGREQ, Client, endpoint, peer
from tests.brokers.mqtt.servers import NatsMqtt
from tests.brokers.stage import completed, failed, in_loop, message, speaking
from tests.brokers.test_connecting import client_of


@in_loop
async def test_client_ids_differ_between_connections_and_workers_and_stay_over_reconnects() -> None:
    ids: list[str] = []
    both = asyncio.Event()

    async def talk(client: Client) -> None:
        ids.append((await client.greet()).client_id)
        waits = len(ids) <= 2
        while True:
            found = await client.published()
            if waits:
                if len(ids) == 2:
                    both.set()
                await both.wait()
            if found.payload == b'"close"':
                return
            client.acknowledge(found.id)

    async with peer(talk) as port, speaking(Mqtt) as broker, speaking(Mqtt) as other:
        to = endpoint(port, client_id="shop")
        for outcome in await asyncio.gather(broker.deliver(message(), to), broker.deliver(message(), to)):
            completed(outcome)
        assert len(ids) == len(set(ids)) == 2
        assert all(one.startswith("shop-") for one in ids)
        failed(await broker.deliver(message("close"), to))
        completed(await broker.deliver(message(), to))
        assert ids[2] in ids[:2]
        completed(await other.deliver(message(), to))
        assert ids[3] not in ids[:3]


@in_loop
async def test_a_quiet_connection_is_kept_by_pings_and_a_dead_one_is_found() -> None:
    heard = asyncio.Event()
    deaf = [False]

    async def talk(client: Client) -> None:
        await client.greet(0, b"\x13\x00\x01")  # the server wants a sign of life within a second
        found = await client.published()
        client.acknowledge(found.id)
        await client.published()
        if deaf[0]:
            while await client.reader.read(100):
                pass
            return
        waiting = asyncio.ensure_future(client.silence())
        while client.pings < 2:
            await asyncio.sleep(0.01)
        waiting.cancel()
        heard.set()
        client.acknowledge(2)
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        to = endpoint(port, timeout_seconds=30)
        completed(await broker.deliver(message(), to))
        completed(await broker.deliver(message(), to))  # while it waits, pings go out
        assert heard.is_set()
        deaf[0] = True
        to = endpoint(port, timeout_seconds=30)
        completed(await broker.deliver(message(), to))
        kind, reason = failed(await broker.deliver(message(), to))
        assert kind == "unknown"
        assert "did not answer a ping" in reason


@in_loop
async def test_a_worker_that_stops_takes_leave() -> None:
    last: list[int] = []
    over = asyncio.Event()

    async def talk(client: Client) -> None:
        await client.greet()
        client.acknowledge((await client.published()).id)
        head, _ = await client.packet()
        last.append(head >> 4)
        over.set()

    async with peer(talk) as port:
        async with speaking(Mqtt) as broker:
            completed(await broker.deliver(message(), endpoint(port)))
        await asyncio.wait_for(over.wait(), 60)
    assert last == [GOODBYE]
    assert PINGREQ not in last


@in_loop
async def test_tls_of_mqtt(ca: trustme.CA) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    tls, count = client_of(ca), [0]

    async def talk(client: Client) -> None:
        await client.greet()
        while True:
            client.acknowledge((await client.published()).id)
            count[0] += 1

    async with peer(talk, context) as port, speaking(Mqtt) as broker:
        completed(await broker.deliver(message(), endpoint(port, tls=tls)))
        for bad, words in [
            (None, ""),
            ({key: tls[key] for key in ("cert", "key")}, "was not accepted"),
            ({"ca": tls["ca"]}, ""),  # the server wants a certificate of the client
            (client_of(trustme.CA()) | {"ca": tls["ca"]}, ""),
        ]:
            config: dict[str, Any] = {} if bad is None else {"tls": bad}
            kind, reason = failed(await broker.deliver(message(), endpoint(port, **config)))
            assert kind == "endpoint"
            assert words in reason
            assert "PRIVATE" not in reason
        wrong_name = endpoint(port, tls=tls, host="localhost")
        assert "was not accepted" in failed(await broker.deliver(message(), wrong_name))[1]
    assert count == [1]


def test_the_port_follows_from_tls() -> None:
    from menzil.deliver.protocol import Surroundings

    broker = Mqtt(Surroundings({}, "w"))
    cases: list[tuple[dict[str, Any], int]] = [
        ({}, 1883), ({"tls": {}}, 8883), ({"tls": {"enabled": False}}, 1883), ({"port": 7}, 7),
    ]  # fmt: skip
    for config, port in cases:
        (target,) = broker.targets({"host": "2001:db8::1", **config})
        assert (target.host, target.port) == ("2001:db8::1", port)


@in_loop
async def test_what_a_server_says_is_stored_without_secrets_and_in_one_line() -> None:
    async def talk(client: Client) -> None:
        login = await client.greet()
        said = f"{login.password} \x1b[31m of {login.username}\nis wrong " + "x" * 60
        client.acknowledge((await client.published()).id, 0x87, reason=said)
        await client.published()
        body = b"\x87" + bytes([3 + len(said)]) + b"\x1f\x00" + bytes([len(said)]) + said.encode()
        client.writer.write(bytes([0xE0, len(body)]) + body)
        await client.silence()

    async with peer(talk) as port, speaking(Mqtt) as broker:
        to = endpoint(port, auth={"username": "shop", "password": "canary-word"})
        for kind in ("endpoint", "unknown"):
            found, reason = failed(await broker.deliver(message(), to))
            assert found == kind
            assert "not authorized (0x87)" in reason
            assert not [word for word in ("canary", "\x1b", "\n") if word in reason]


@pytest.mark.parametrize("auth", [None, {"username": "shop", "password": "wrong-word"}])
@in_loop
async def test_a_login_that_nats_refuses(auth: dict[str, str] | None) -> None:
    with NatsMqtt('authorization { user: "shop", password: "canary-word" }') as server:
        async with speaking(Mqtt) as broker:
            good = {"username": "shop", "password": "canary-word"}
            completed(await broker.deliver(message(), endpoint(server.mqtt_port, version="3.1.1", auth=good)))
            config: dict[str, Any] = {"auth": auth} if auth else {}
            kind, reason = failed(
                await broker.deliver(message(), endpoint(server.mqtt_port, version="3.1.1", **config))
            )
            assert kind == "endpoint"
            assert "wrong-word" not in reason
