"""TLS, logins and tokens: what librdkafka is told, and what it makes of it."""

from __future__ import annotations

import asyncio
import base64
import gc
import ssl
from typing import Any

import pytest
import trustme
from aiohttp import web
from confluent_kafka import Producer

from menzil.deliver.broker.plan import Plan, make_plan
from menzil.deliver.guard import read_server
from menzil.deliver.guard.resolve import system_lookup
from menzil.deliver.http.tls import Contexts
from menzil.deliver.kafka import Kafka
from menzil.deliver.kafka.config import fingerprint, properties
from menzil.deliver.kafka.token import Tokens
from menzil.deliver.protocol import Surroundings
from tests.brokers.kafka.stage import MockCluster, kafka_endpoint, records
from tests.brokers.relay import Relay
from tests.brokers.stage import completed, failed, in_loop, message, speaking
from tests.brokers.test_connecting import client_of

PLAIN = {"type": "plain", "username": "u", "password": "canary-word"}


def plan(**config: Any) -> Plan:
    servers = ["Kafka-1.example.com", "[2001:db8::1]:9093"]
    known = {"servers": servers, "topic": "orders", **config}
    return make_plan(known, tuple(read_server(server, 9092) for server in servers), Contexts(alpn=()), "test")


def test_a_producer_is_idempotent_and_gives_up_with_the_endpoint() -> None:
    found = properties(plan(timeout_seconds=7))
    assert found["bootstrap.servers"] == "kafka-1.example.com:9092,[2001:db8::1]:9093"
    assert (found["acks"], found["enable.idempotence"]) == ("all", True)
    assert found["delivery.timeout.ms"] == 7000
    assert found["security.protocol"] == "PLAINTEXT"
    assert not any(name.startswith(("sasl.", "ssl.")) for name in found)


@pytest.mark.parametrize(
    ("auth", "tls", "wanted"),
    [
        (PLAIN, None, {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}),
        (PLAIN, {}, {"security.protocol": "SASL_SSL", "sasl.username": "u", "sasl.password": "canary-word"}),
        (PLAIN, {"enabled": False}, {"security.protocol": "SASL_PLAINTEXT"}),
        (PLAIN | {"type": "scram-sha-256"}, None, {"sasl.mechanism": "SCRAM-SHA-256"}),
        (PLAIN | {"type": "scram-sha-512"}, {}, {"sasl.mechanism": "SCRAM-SHA-512", "security.protocol": "SASL_SSL"}),
        (None, {}, {"security.protocol": "SSL"}),
        (
            None,
            {"verify": False},
            {"enable.ssl.certificate.verification": False, "ssl.endpoint.identification.algorithm": "none"},
        ),
    ],
)
def test_logins_become_properties_that_librdkafka_takes(auth: Any, tls: Any, wanted: dict[str, Any]) -> None:
    config = {key: value for key, value in (("auth", auth), ("tls", tls)) if value is not None}
    found = properties(plan(**config))
    assert found.items() >= wanted.items()
    Producer(found)  # which refuses what it does not know


def test_only_known_options_reach_librdkafka() -> None:
    found = properties(plan(options={"batch.size": 5000, "plugin.library.paths": "/tmp/x.so", "acks": "0"}))
    assert found["batch.size"] == 5000
    assert found["acks"] == "all"
    assert "plugin.library.paths" not in found


def test_another_password_is_another_producer() -> None:
    old, new = (plan(auth=PLAIN | {"password": word}) for word in ("old", "new"))
    names = {fingerprint(properties(each), each.config["auth"]) for each in (old, new, old)}
    assert len(names) == 2


@in_loop
async def test_tls_of_kafka(ca: trustme.CA) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    tls = client_of(ca)
    with MockCluster() as cluster:
        topic = cluster.create("orders", 1)
        async with Relay(cluster.port, context) as relay, speaking(Kafka) as broker:
            cluster.advertise("127.0.0.1", relay.port)
            servers = [f"127.0.0.1:{relay.port}"]
            completed(await broker.deliver(message(), kafka_endpoint(cluster, topic, servers=servers, tls=tls)))
            for bad, words in (
                ({key: tls[key] for key in ("cert", "key")}, "certificate verify failed"),
                ({"ca": tls["ca"]}, ""),  # the server wants a certificate of the client
                (client_of(trustme.CA()) | {"ca": tls["ca"]}, ""),
            ):
                endpoint = kafka_endpoint(cluster, topic, servers=servers, tls=bad, connect_timeout_seconds=5)
                kind, reason = failed(await broker.deliver(message(), endpoint))
                assert kind == "endpoint"
                assert words in reason, reason
            named = [f"localhost:{relay.port}"]
            wrong = kafka_endpoint(cluster, topic, servers=named, tls=tls, options={"broker.address.family": "v4"})
            assert failed(await broker.deliver(message(), wrong))[0] == "endpoint"
            unread = kafka_endpoint(cluster, topic, tls={"ca": "-----BEGIN CERTIFICATE-----\ncanary\n"})
            kind, reason = failed(await broker.deliver(message(), unread))
            assert kind == "endpoint"
            assert "canary" not in reason
            cluster.advertise("127.0.0.1", cluster.port)
        assert len(records(cluster, topic, 1)) == 1


@in_loop
async def test_a_token_is_fetched_where_the_guard_allows_it(cluster: MockCluster) -> None:
    asked: list[tuple[str, str]] = []
    answer = web.json_response({"access_token": "canary-token-1", "expires_in": 300})

    async def give(request: web.Request) -> web.Response:
        asked.append((request.headers["authorization"], await request.text()))
        return answer if len(asked) == 1 else web.Response(status=401)

    app = web.Application()
    app.router.add_post("/token", give)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert runner.addresses
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/token"
    auth = {"type": "oauth2", "token_url": url, "client_id": "me", "client_secret": "canary-secret", "scope": "kafka"}
    try:
        async with speaking(Kafka, http_allowed_networks="127.0.0.0/8") as broker:
            # The mock knows no logins: with a token, its refusal of the login is what is left.
            kind, reason = failed(await broker.deliver(message(), kafka_endpoint(cluster, "orders", auth=auth)))
            assert kind == "endpoint"
            assert "SASL" in reason
            basic = base64.b64encode(b"me:canary-secret").decode()
            assert asked == [(f"Basic {basic}", "grant_type=client_credentials&scope=kafka")]
            other = auth | {"scope": "other"}
            kind, reason = failed(await broker.deliver(message(), kafka_endpoint(cluster, "orders", auth=other)))
            assert kind == "endpoint"
            assert "token server answered HTTP 401" in reason
        async with speaking(Kafka) as broker:
            kind, reason = failed(await broker.deliver(message(), kafka_endpoint(cluster, "orders", auth=auth)))
            assert kind == "endpoint"
            assert "http_allowed_networks" in reason
        assert len(asked) >= 2
    finally:
        await runner.cleanup()


def test_a_token_that_is_wanted_when_the_worker_has_ended_is_refused_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    auth = {"type": "oauth2", "token_url": "http://127.0.0.1:9/token", "client_id": "me", "client_secret": "canary"}

    async def getter() -> Any:
        return Tokens(Surroundings({}, "test"), system_lookup).getter(auth, plan(timeout_seconds=1))

    get = asyncio.run(getter())
    gc.collect()  # what earlier tests left
    recwarn.clear()
    with pytest.raises(RuntimeError, match="closed"):
        get("")
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []
