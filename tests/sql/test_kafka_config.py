"""The config of an endpoint of Kafka, and what messages may override at any broker."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from menzil.deliver.kafka.config import OPTIONS
from tests.sql.queue import Queue
from tests.sql.test_broker_config import CERTIFICATE, NATS, REDIS

KAFKA = {"servers": ["kafka-1.example.com:9092", "kafka-2.example.com:9092"], "topic": "orders"}
KEY = "-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n"
OAUTH = {"type": "oauth2", "token_url": "https://id.example.com/token", "client_id": "c", "client_secret": "canary-s"}

GOOD: list[dict[str, Any]] = [
    {},
    {"topic": "orders.v1_new-2", "key": "message_id", "partitioner": "consistent_random", "compression": "zstd"},
    {"key": {"text": "shop"}, "linger_ms": 0, "max_message_bytes": 5_000_000, "client_id": "billing"},
    {"partition": 0, "headers": {"X-A": "b"}, "timeout_seconds": 2, "connect_timeout_seconds": 1},
    {"auth": {"type": "plain", "username": "u", "password": "canary-p"}, "tls": {}},
    {"auth": {"type": "scram-sha-256", "username": "u", "password": "canary-p"}},
    {"auth": {"type": "scram-sha-512", "username": "u", "password": "canary-p"}},
    {"auth": {**OAUTH, "scope": "kafka", "client_auth": "body", "audience": "kafka"}},
    {"tls": {"ca": CERTIFICATE, "cert": CERTIFICATE, "key": KEY, "verify": False}},
    {"cloudevents": {"mode": "binary"}, "key": "ordering_key", "max_concurrency": 5, "capture_response": True},
    {"options": {"batch.size": 100_000, "broker.address.family": "v4", "client.rack": "a", "compression.level": 3}},
    {"options": {"metadata.max.age.ms": 60_000, "socket.keepalive.enable": True}},
    {"allow_overrides": {"topic": ["orders.eu", "orders.us"]}},
]

BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"topik": "x"}, "'topik' is not a key of the config of a kafka endpoint", "Did you mean topic?"),
    ({"acks": 1}, "'acks' is not a key", "Known keys here are"),
    ({"servers": ["kafka://a"]}, "servers must be a list of 1 to 10 servers", ""),
    ({"servers": []}, "servers must be", ""),
    ({"topic": "a b"}, "topic must be a topic", ""),
    ({"topic": ".."}, "topic must be a topic", ""),
    ({"topic": "x" * 250}, "topic must be a topic", ""),
    ({"topic": 7}, "topic must be a topic", ""),
    ({"key": "random"}, "key must be one of ordering_key, message_id, none, or an object", ""),
    ({"key": {"text": ""}}, "key must be one of", ""),
    ({"key": {"text": "a", "b": 1}}, "key must be one of", ""),
    ({"key": {}}, "key must be one of", ""),
    ({"key": None}, "key must be one of", ""),
    ({"key": "none", "partition": 1}, "partition does not go with key", ""),
    ({"key": "message_id", "cloudevents": {"mode": "binary"}}, "key must be ordering_key with cloudevents", ""),
    ({"key": {"text": "a"}, "cloudevents": {"mode": "binary"}}, "key must be ordering_key with cloudevents", ""),
    ({"partition": -1}, "partition must be", ""),
    ({"compression": "brotli"}, "compression must be one of lz4", ""),
    ({"headers": {"menzil-attempt": "x"}}, "headers.menzil-attempt may not be set", "menzil writes"),
    ({"auth": {"username": "u", "password": "p"}}, "auth.type is needed", "Add it to the config"),
    ({"auth": {"type": "gssapi"}}, "auth.type must be one of plain, scram-sha-256", ""),
    ({"auth": {"type": "plain", "username": "u"}}, "auth.password is needed with auth.type plain", ""),
    ({"auth": {**OAUTH, "password": "p"}}, "auth.password does not belong to auth.type oauth2", ""),
    ({"auth": {"type": "oauth2", "client_id": "c", "client_secret": "s"}}, "auth.token_url is needed", ""),
    ({"auth": {**OAUTH, "token_url": "file:///etc/passwd"}}, "auth.token_url", ""),
    ({"tls": {"cert": CERTIFICATE}}, "tls.key is needed", ""),
    ({"tls": {"ca": "/etc/ca.pem"}}, "tls.ca must be a certificate in PEM format", ""),
    ({"connect_timeout_seconds": 11}, "connect_timeout_seconds may not be longer", ""),
    ({"options": []}, "options must be an object", ""),
    ({"options": {"batch.sise": 1}}, "'options.batch.sise' is not an option", "Did you mean batch.size?"),
    ({"options": {"plugin.library.paths": "/tmp/x.so"}}, "is not an option of a kafka endpoint", "Known options are"),
    ({"options": {"sasl.kerberos.kinit.cmd": "id"}}, "is not an option", ""),
    ({"options": {"ssl.ca.location": "/etc/ca"}}, "is not an option", ""),
    ({"options": {"bootstrap.servers": "a"}}, "is not an option", ""),
    ({"options": {"debug": "all"}}, "is not an option", ""),
    ({"options": {"test.mock.num.brokers": 3}}, "is not an option", ""),
    ({"options": {"enable.idempotence": False}}, "is not an option", ""),
    ({"options": {"batch.size": "many"}}, "options.batch.size must be a whole number", ""),
    ({"options": {"socket.keepalive.enable": "yes"}}, "options.socket.keepalive.enable must be true or false", ""),
    ({"allow_overrides": ["topic"]}, "allow_overrides must be an object", ""),
    ({"allow_overrides": {"topics": ["a"]}}, "'allow_overrides.topics' is not a key", "Did you mean"),
    ({"allow_overrides": {"topic": "a"}}, "allow_overrides.topic must be a list", ""),
    ({"allow_overrides": {"topic": ["a b"]}}, "allow_overrides.topic must list topics", ""),
]


def test_good_configs_of_kafka_make_endpoints(queue: Queue) -> None:
    for number, keys in enumerate(GOOD):
        queue.call("create_endpoint", f"good{number}", "kafka", KAFKA | keys)


def test_bad_configs_of_kafka_are_refused_with_the_key_and_a_hint(queue: Queue) -> None:
    for keys, words, hint in BAD:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            queue.call("validate_endpoint_config", "kafka", KAFKA | keys)
        assert words in str(refusal.value.diag.message_primary), (keys, refusal.value)
        assert hint in str(refusal.value.diag.message_hint)
    for missing in KAFKA:
        rest = {key: value for key, value in KAFKA.items() if key != missing}
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"{missing} is needed"):
            queue.call("validate_endpoint_config", "kafka", rest)


def test_the_worker_knows_the_options_that_the_database_takes(queue: Queue) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
        queue.call("validate_endpoint_config", "kafka", KAFKA | {"options": {"x": 1}})
    (named,) = str(refusal.value.diag.message_hint).split("Known options are ")[1:]
    assert set(named.rstrip(".").split(", ")) == OPTIONS


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"auth": {"type": "plain", "username": "u", "password": "canary-p"}}, ("auth", "password")),
        ({"auth": OAUTH}, ("auth", "client_secret")),
        ({"tls": {"cert": CERTIFICATE, "key": KEY}}, ("tls", "key")),
    ],
)
def test_secrets_of_kafka_are_kept_apart(queue: Queue, keys: dict[str, Any], path: tuple[str, str]) -> None:
    queue.call("create_endpoint", "orders", "kafka", KAFKA | keys)
    shown = queue.one("select config from menzil.endpoints")[path[0]]
    assert shown == keys[path[0]] | {path[1]: {"$secret": True}}
    queue.call("alter_endpoint", "orders", KAFKA | {"topic": "orders.old", path[0]: shown})
    (row,) = queue.rows("delivery_configs", ["orders"])
    assert row.config[path[0]] == keys[path[0]]
    assert "canary" not in queue.one("select string_agg(e::text, '') from menzil.event_log e")


def test_overrides_of_other_brokers_are_checked_too(queue: Queue) -> None:
    queue.call("create_endpoint", "n", "nats", NATS | {"allow_overrides": {"subject": ["orders.eu"]}})
    queue.call("create_endpoint", "r", "redis", REDIS | {"allow_overrides": {"stream": ["orders eu"]}})
    for protocol, config in (
        ("nats", NATS | {"allow_overrides": {"subject": ["orders.*"]}}),
        ("nats", NATS | {"allow_overrides": {"subject": ["$JS.API"]}}),
        ("nats", NATS | {"allow_overrides": {"stream": ["orders"]}}),
        ("redis", REDIS | {"allow_overrides": {"stream": ["a\r\nb"]}}),
        ("redis", REDIS | {"allow_overrides": {"stream": []}}),
    ):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="allow_overrides"):
            queue.call("validate_endpoint_config", protocol, config)
