"""The config of an endpoint of a broker: every key is checked, and secrets are kept apart."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tests.sql.queue import Queue

SEED = "SU" + "A" * 56
CREDS = f"-----BEGIN NATS USER JWT-----\nabc\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n{SEED}\n"
NATS = {"servers": ["broker.example.com:4222"], "subject": "orders.new"}
REDIS = {"host": "cache.example.com", "stream": "orders"}
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("nats", {}),
    ("nats", {"servers": ["a", "10.0.0.1", "[2001:db8::1]:4222"], "stream": "ORDERS", "dedup": False}),
    ("nats", {"message_ttl": True, "headers": {"X-A": "b"}, "timeout_seconds": 2, "connect_timeout_seconds": 1}),
    ("nats", {"auth": {"type": "token", "token": "canary-token"}}),
    ("nats", {"auth": {"type": "password", "username": "u", "password": "canary-word"}}),
    ("nats", {"auth": {"type": "nkey", "nkey_seed": SEED}}),
    ("nats", {"auth": {"type": "credentials", "credentials": CREDS}}),
    ("nats", {"cloudevents": {"mode": "binary"}, "tls": {"ca": CERTIFICATE}, "max_concurrency": 5}),
    ("redis", {}),
    ("redis", {"host": "2001:db8::1", "port": 6380, "db": 3, "maxlen": 1000, "maxlen_exact": True}),
    ("redis", {"create_stream": False, "durability": "fsync", "replicas": 1, "dedup_seconds": 600}),
    ("redis", {"durability": "replicas", "replicas": 2, "auth": {"username": "u", "password": "p"}}),
    ("redis", {"auth": {"password": ""}, "tls": {}, "rate_limit": {"count": 1, "interval_ms": 1}}),
]

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("nats", {"servers": None}, "servers must be a list of 1 to 10 servers"),
    ("nats", {"servers": []}, "servers must be"),
    ("nats", {"servers": ["nats://a:4222"]}, "servers must be"),
    ("nats", {"servers": ["127.1"]}, "servers must be"),
    ("nats", {"servers": ["a:65536"]}, "servers must be"),
    ("nats", {"servers": [4222]}, "servers must be"),
    ("nats", {"subject": "orders.*"}, "subject must be a subject"),
    ("nats", {"subject": "orders.>"}, "subject must be"),
    ("nats", {"subject": "a b"}, "subject must be"),
    ("nats", {"subject": "a..b"}, "subject must be"),
    ("nats", {"subject": "a\r\nPUB x 0"}, "subject must be"),
    ("nats", {"subject": "$JS.API.STREAM.DELETE.X"}, "subject must be"),
    ("nats", {"jetstream": False}, "'jetstream' is not a key of the config of a nats endpoint"),
    ("nats", {"auth": {"token": "t"}}, "auth.type is needed"),
    ("nats", {"auth": {"type": "token"}}, "auth.token is needed with auth.type token"),
    ("nats", {"auth": {"type": "token", "token": "t", "password": "p"}}, "auth.password does not belong"),
    ("nats", {"auth": {"type": "nkey", "nkey_seed": "SUA"}}, "auth.nkey_seed must be"),
    ("nats", {"auth": {"type": "credentials", "credentials": "/etc/nats.creds"}}, "auth.credentials must be the text"),
    ("nats", {"headers": {"Nats-Rollup": "all"}}, "headers.Nats-Rollup may not be set"),
    ("nats", {"headers": {"Menzil-Id": "x"}}, "headers.Menzil-Id may not be set"),
    ("redis", {"headers": {"correlation-id": "x"}}, "headers.correlation-id may not be set"),
    ("redis", {"rate_limit": {"count": 1}}, "rate_limit.interval_ms is needed"),
    ("nats", {"connect_timeout_seconds": 11}, "connect_timeout_seconds may not be longer"),
    ("redis", {"host": "redis://a"}, "host must be a host name"),
    ("redis", {"host": "a:6379"}, "host must be"),
    ("redis", {"host": "0x7f000001"}, "host must be"),
    ("redis", {"host": 7}, "host must be"),
    ("redis", {"port": 0}, "port must be"),
    ("redis", {"stream": ""}, "stream must be"),
    ("redis", {"streem": "x"}, "'streem' is not a key"),
    ("redis", {"durability": "always"}, "durability must be one of reply, fsync, replicas"),
    ("redis", {"durability": "replicas"}, "replicas is needed"),
    ("redis", {"replicas": 1}, "replicas goes with durability"),
    ("redis", {"maxlen_exact": True}, "maxlen_exact goes with maxlen"),
    ("redis", {"auth": {"username": "u"}}, "auth.password is needed"),
    ("redis", {"tls": {"cert": CERTIFICATE}}, "tls.key is needed"),
    ("redis", {"url": "https://example.com"}, "'url' is not a key"),
]


def base(protocol: str) -> dict[str, Any]:
    return NATS if protocol == "nats" else REDIS


def test_good_configs_make_endpoints(queue: Queue) -> None:
    for number, (protocol, keys) in enumerate(GOOD):
        queue.call("create_endpoint", f"good{number}", protocol, base(protocol) | keys)


def test_bad_configs_are_refused_with_the_key_and_a_hint(queue: Queue) -> None:
    for protocol, keys, words in BAD:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            queue.call("validate_endpoint_config", protocol, base(protocol) | keys)
        assert words in str(refusal.value.diag.message_primary), (keys, refusal.value)
        assert refusal.value.diag.message_hint
    for protocol in ("nats", "redis"):
        for missing in base(protocol):
            rest = {key: value for key, value in base(protocol).items() if key != missing}
            with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"{missing} is needed"):
                queue.call("validate_endpoint_config", protocol, rest)


@pytest.mark.parametrize("kind", ["token", "password", "nkey", "credentials"])
def test_secrets_of_brokers_are_kept_apart(queue: Queue, kind: str) -> None:
    auth = next(keys["auth"] for _, keys in GOOD if keys.get("auth", {}).get("type") == kind)
    queue.call("create_endpoint", "orders", "nats", NATS | {"auth": auth})
    shown = queue.one("select config from menzil.endpoints")["auth"]
    (secret,) = [key for key in auth if key not in ("type", "username")]
    assert shown == auth | {secret: {"$secret": True}}
    queue.call("alter_endpoint", "orders", NATS | {"subject": "orders.old", "auth": shown})
    (row,) = queue.rows("delivery_configs", ["orders"])
    assert row.config["auth"] == auth
    assert json.dumps(auth[secret])[1:-1] not in queue.one("select string_agg(e::text, '') from menzil.event_log e")
