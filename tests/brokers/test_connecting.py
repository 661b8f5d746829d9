"""How a connection begins: addresses, logins, TLS, and what the server must be able to do."""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from menzil.deliver.broker import kept
from menzil.deliver.nats import Nats
from menzil.deliver.nats.nkey import Nkey, encoded_seed
from menzil.deliver.protocol import Refused, Surroundings
from menzil.deliver.redis import Redis
from tests.brokers.relay import Relay
from tests.brokers.servers import NatsServer, Valkey, free_port
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
)

SEED = encoded_seed(os.urandom(32))


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::ffff:127.0.0.1", "169.254.169.254"])
@in_loop
async def test_no_broker_is_connected_to_unless_its_network_is_allowed(valkey: Valkey, address: str) -> None:
    stream = fresh("orders")
    async with speaking(Redis, broker_allowed_networks="") as broker, entries(valkey.port) as client:
        endpoint = redis_endpoint(valkey.port, stream, host=address)
        outcome = await broker.deliver(message(), endpoint)
        assert isinstance(outcome, Refused)
        assert outcome.retry is True  # a setting that is missing makes no dead letters
        assert "setting broker_allowed_networks" in outcome.reason
        assert await client.xlen(stream) == 0
        # HTTP endpoints must not profit from what brokers are allowed, nor the other way round.
        broker.refresh(Surroundings({"http_allow_internal_urls": "true", "http_allowed_networks": "127.0.0.0/8"}, "w"))
        assert isinstance(await broker.deliver(message(), endpoint), Refused)


@in_loop
async def test_an_address_that_is_allowed_no_longer_is_not_reached_over_a_kept_connection(valkey: Valkey) -> None:
    async with speaking(Redis) as broker:
        endpoint = redis_endpoint(valkey.port, fresh("orders"))
        completed(await broker.deliver(message(), endpoint))
        assert broker.kept == 1
        broker.refresh(Surroundings({"broker_allowed_networks": "10.0.0.0/8"}, "w"))
        assert isinstance(await broker.deliver(message(), endpoint), Refused)


@in_loop
async def test_connections_are_used_again_and_closed_when_they_are_idle(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "IDLE_SECONDS", 600)
    monkeypatch.setattr(kept, "_TICK", 0.05)
    async with speaking(Redis) as broker, entries(valkey.port) as client:
        endpoint = redis_endpoint(valkey.port, fresh("orders"))
        before = (await client.info("stats"))["total_connections_received"]
        for _ in range(3):
            completed(await broker.deliver(message(), endpoint))
        assert (await client.info("stats"))["total_connections_received"] == before + 1
        monkeypatch.setattr(kept, "IDLE_SECONDS", 0.1)
        async with asyncio.timeout(60):
            while broker.kept:
                await asyncio.sleep(0.01)


@in_loop
async def test_nobody_listens() -> None:
    port = free_port()
    async with speaking(Redis) as redis, speaking(Nats) as nats:
        for broker, endpoint in ((redis, redis_endpoint(port, "s")), (nats, nats_endpoint(port, "s"))):
            assert failed(await broker.deliver(message(), endpoint)) == (
                "endpoint",
                f"Connection refused by 127.0.0.1:{port}",
            )


@in_loop
async def test_the_next_server_of_nats_is_tried(nats_server: NatsServer) -> None:
    stream, subject = fresh("S"), fresh("s")
    async with speaking(Nats) as broker, jetstream(nats_server.port, stream, subject):
        servers = [f"127.0.0.1:{free_port()}", f"127.0.0.1:{nats_server.port}"]
        completed(await broker.deliver(message(), nats_endpoint(0, subject, servers=servers)))


@in_loop
async def test_logins_of_valkey() -> None:
    with Valkey(requirepass="canary-word") as server:
        async with speaking(Redis) as broker:
            for auth, words in [
                (None, "NOAUTH"),
                ({"password": "canary-wrong"}, "WRONGPASS"),
                ({"username": "nobody", "password": "canary-word"}, "WRONGPASS"),
            ]:
                config = {} if auth is None else {"auth": auth}
                kind, reason = failed(await broker.deliver(message(), redis_endpoint(server.port, "s", **config)))
                assert (kind, words in reason, "canary" in reason) == ("endpoint", True, False)
            for auth in ({"password": "canary-word"}, {"username": "default", "password": "canary-word"}):
                completed(await broker.deliver(message(), redis_endpoint(server.port, "s", auth=auth, db=2)))
        async with entries(server.port, password="canary-word", db=2) as client:
            assert await client.xlen("s") == 2


LOGINS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ('authorization { token: "canary-token" }', {"type": "token", "token": "canary-token"}, {"token": "canary-wrong"}),
    (
        'authorization { user: "u", password: "canary-word" }',
        {"type": "password", "username": "u", "password": "canary-word"},
        {"password": "canary-wrong"},
    ),
    (
        f'authorization {{ users: [ {{ nkey: "{Nkey(SEED).public}" }} ] }}',
        {"type": "nkey", "nkey_seed": SEED},
        {"nkey_seed": encoded_seed(os.urandom(32))},
    ),
]


@pytest.mark.parametrize(("lines", "auth", "wrong"), LOGINS, ids=["token", "password", "nkey"])
@in_loop
async def test_logins_of_nats(lines: str, auth: dict[str, Any], wrong: dict[str, Any]) -> None:
    with NatsServer(lines=lines) as server:
        async with speaking(Nats) as broker:
            for bad in ({}, {"auth": auth | wrong}):
                kind, reason = failed(await broker.deliver(message(), nats_endpoint(server.port, "s", **bad)))
                assert kind == "endpoint"
                assert "Authorization Violation" in reason
                assert "canary" not in reason
            # The login is good, and no stream has the subject.
            kind, reason = failed(await broker.deliver(message(), nats_endpoint(server.port, "s", auth=auth)))
            assert (kind, "No stream of" in reason) == ("endpoint", True)


@pytest.fixture
def files(ca: trustme.CA, tmp_path: Path) -> dict[str, str]:
    """The certificate of a server for 127.0.0.1, its key, and the CA."""
    issued = ca.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "both.pem"))
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return {"both": str(tmp_path / "both.pem"), "ca": str(tmp_path / "ca.pem")}


def client_of(ca: trustme.CA) -> dict[str, str]:
    issued = ca.issue_cert("client@example.org")
    cert = b"".join(pem.bytes() for pem in issued.cert_chain_pems).decode()
    return {"ca": ca.cert_pem.bytes().decode(), "cert": cert, "key": issued.private_key_pem.bytes().decode()}


@in_loop
async def test_tls_of_valkey(ca: trustme.CA, valkey: Valkey) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    stream, tls = fresh("orders"), client_of(ca)
    async with Relay(valkey.port, context) as relay, speaking(Redis) as broker:
        completed(await broker.deliver(message(), redis_endpoint(relay.port, stream, tls=tls)))
        for bad, words in [
            (None, ""),
            ({key: tls[key] for key in ("cert", "key")}, "was not accepted"),
            ({"ca": tls["ca"]}, ""),  # the server wants a certificate of the client
            (client_of(trustme.CA()) | {"ca": tls["ca"]}, ""),
        ]:
            config = {} if bad is None else {"tls": bad}
            kind, reason = failed(await broker.deliver(message(), redis_endpoint(relay.port, stream, **config)))
            assert kind == "endpoint"
            assert words in reason
            assert "PRIVATE" not in reason
        wrong_name = redis_endpoint(relay.port, stream, tls=tls, host="localhost")
        assert "was not accepted" in failed(await broker.deliver(message(), wrong_name))[1]
    async with entries(valkey.port) as client:
        assert await client.xlen(stream) == 1


@in_loop
async def test_tls_of_nats(ca: trustme.CA, files: dict[str, str], nats_server: NatsServer) -> None:
    lines = (
        f'tls {{ cert_file: "{files["both"]}", key_file: "{files["both"]}", ca_file: "{files["ca"]}", verify: true }}'
    )
    with NatsServer(lines=lines) as server:
        async with speaking(Nats) as broker:
            tls = client_of(ca)
            # The login is good, and no stream has the subject.
            assert (
                "No stream of" in failed(await broker.deliver(message(), nats_endpoint(server.port, "s", tls=tls)))[1]
            )
            for bad, words in [
                (None, "wants TLS"),
                ({key: tls[key] for key in ("cert", "key")}, "was not accepted"),
                ({"ca": tls["ca"]}, ""),
            ]:
                config = {} if bad is None else {"tls": bad}
                kind, reason = failed(await broker.deliver(message(), nats_endpoint(server.port, "s", **config)))
                assert kind == "endpoint"
                assert words in reason
            plain = nats_endpoint(nats_server.port, "s", tls=tls)
            assert "has no TLS, and the endpoint wants it" in failed(await broker.deliver(message(), plain))[1]


@in_loop
async def test_durability_that_valkey_cannot_give_is_found_before_anything_is_written() -> None:
    with Valkey(appendonly="no") as server:
        async with speaking(Redis) as broker, entries(server.port) as client:
            kind, reason = failed(await broker.deliver(message(), redis_endpoint(server.port, "s", durability="fsync")))
            assert kind == "endpoint"
            assert "appendonly is disabled" in reason
            assert await client.xlen("s") == 0


@in_loop
async def test_a_message_is_delivered_when_disk_or_replicas_have_it(valkey: Valkey) -> None:
    stream = fresh("orders")
    async with speaking(Redis) as broker, entries(valkey.port) as client:
        endpoint = redis_endpoint(valkey.port, stream, durability="fsync", timeout_seconds=20)
        for outcome in await broker.deliver_many([message(n) for n in range(20)], endpoint):
            completed(outcome)
        lonely = redis_endpoint(valkey.port, stream, durability="replicas", replicas=1, timeout_seconds=1)
        kind, reason = failed(await broker.deliver(message(), lonely))
        assert kind == "unknown"
        assert "was written" in reason
        assert await client.xlen(stream) == 21


@in_loop
async def test_answers_of_valkey_that_blame_the_endpoint(valkey: Valkey) -> None:
    async with speaking(Redis) as broker, entries(valkey.port) as client:
        await client.set("text", "x")
        kind, reason = failed(await broker.deliver(message(), redis_endpoint(valkey.port, "text")))
        assert (kind, "WRONGTYPE" in reason) == ("endpoint", True)
        missing = fresh("none")
        for dedup in (0, 60):
            config = {"create_stream": False, "dedup_seconds": dedup}
            kind, reason = failed(await broker.deliver(message(), redis_endpoint(valkey.port, missing, **config)))
            assert (kind, "There is no stream" in reason) == ("endpoint", True)
        assert not await client.exists(missing)
        capped = fresh("capped")
        endpoint = redis_endpoint(valkey.port, capped, maxlen=5, maxlen_exact=True)
        await broker.deliver_many([message(n) for n in range(20)], endpoint)
        assert await client.xlen(capped) == 5
        scripted = redis_endpoint(valkey.port, fresh("s"), dedup_seconds=60)
        completed(await broker.deliver(message(), scripted))
        await client.script_flush()
        assert failed(await broker.deliver(message(), scripted))[0] == "endpoint"
        completed(await broker.deliver(message(), scripted))  # a new connection has loaded the script again


@in_loop
async def test_answers_of_nats_that_blame_the_endpoint_or_the_message(nats_server: NatsServer) -> None:
    stream, subject = fresh("S"), fresh("s")
    async with speaking(Nats) as broker, jetstream(nats_server.port, stream, subject, max_msg_size=200, max_msgs=3):
        wrong = nats_endpoint(nats_server.port, subject, stream="OTHER")
        assert failed(await broker.deliver(message(), wrong))[0] == "endpoint"
        endpoint = nats_endpoint(nats_server.port, subject)
        batch = [
            message(1),
            message("x" * 300),
            message(3, ordering_key="two\nlines"),
            message(4, headers={"Nats-A": "b"}),
        ]
        found = await broker.deliver_many(batch, endpoint)
        completed(found[0])
        assert [failed(outcome)[0] for outcome in found[1:]] == ["message"] * 3
        assert "two" not in failed(found[2])[1]


@in_loop
async def test_tls_asked_of_a_plain_port_is_named(valkey: Valkey) -> None:
    """Valkey waits for more of what it takes for a command."""
    async with speaking(Redis) as broker:
        endpoint = redis_endpoint(valkey.port, "s", tls={"enabled": True}, connect_timeout_seconds=1)
        (found,) = await broker.deliver_many([message()], endpoint)
    kind, reason = failed(found)
    assert kind == "endpoint"
    assert reason == f"No connection to 127.0.0.1:{valkey.port} in time (TLS handshake; does this port speak TLS?)"


@in_loop
async def test_a_server_of_another_kind_is_suspected(valkey: Valkey) -> None:
    """Valkey says nothing before it is asked, and a server of NATS speaks first."""
    async with speaking(Nats) as broker:
        (found,) = await broker.deliver_many([message()], nats_endpoint(valkey.port, "s", connect_timeout_seconds=1))
    kind, reason = failed(found)
    assert kind == "endpoint"
    assert reason == f"No connection to 127.0.0.1:{valkey.port} in time (logging in; does this port speak NATS?)"
