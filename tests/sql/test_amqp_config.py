"""The config of an endpoint of AMQP: every key is checked, and secrets are kept apart."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tests.sql.queue import Queue

AMQP = {"host": "rabbit.example.com", "exchange": "orders", "routing_key": "orders.new"}
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n"
PLAIN = {"type": "plain", "username": "u", "password": "canary-word"}

GOOD: list[dict[str, Any]] = [
    {},
    {"exchange": "", "routing_key": "a queue", "port": 5673, "vhost": "shop"},
    {"routing_key": "", "mandatory": False, "persistent": False, "heartbeat_seconds": 5},
    {"unroutable": "dead_letter", "mandatory": True, "headers": {"X-A": "b"}},
    {"auth": PLAIN, "tls": {}, "timeout_seconds": 2, "connect_timeout_seconds": 1},
    {"auth": {"type": "external"}, "tls": {"cert": CERTIFICATE, "key": KEY, "ca": CERTIFICATE}},
    {"cloudevents": {"mode": "binary"}, "max_concurrency": 5, "rate_limit": {"count": 1, "interval_ms": 1}},
]

BAD: list[tuple[dict[str, Any], str]] = [
    ({"host": "amqp://a"}, "host must be a host name"),
    ({"host": "a:5672"}, "host must be"),
    ({"port": 0}, "port must be"),
    ({"exchange": "x" * 256}, "exchange must be a text of 0 to 255 characters"),
    ({"exchange": "ü" * 200}, "exchange may have at most 255 bytes"),
    ({"routing_key": "ü" * 200}, "routing_key may have at most 255 bytes"),
    ({"routing_key": "a\nb"}, "routing_key must be"),
    ({"exchange": "", "routing_key": ""}, "routing_key may not be empty with the default exchange"),
    ({"vhost": ""}, "vhost must be"),
    ({"mandatory": "yes"}, "mandatory must be true or false"),
    ({"unroutable": "drop"}, "unroutable must be one of retry, dead_letter"),
    ({"unroutable": "retry", "mandatory": False}, "unroutable goes with mandatory true"),
    ({"heartbeat_seconds": 0}, "heartbeat_seconds must be"),
    ({"routing-key": "x"}, "'routing-key' is not a key of the config of an amqp endpoint"),
    ({"queue": "x"}, "'queue' is not a key"),
    ({"headers": {"menzil-key": "x"}}, "headers.menzil-key may not be set"),
    ({"auth": {"username": "u", "password": "p"}}, "auth.type is needed"),
    ({"auth": {"type": "plain", "username": "u"}}, "auth.password is needed with auth.type plain"),
    ({"auth": {"type": "external"}}, "tls.cert is needed"),
    (
        {"auth": {"type": "external", "username": "u"}, "tls": {"cert": CERTIFICATE, "key": KEY}},
        "auth.username does not",
    ),
    (
        {"auth": {"type": "external"}, "tls": {"cert": CERTIFICATE, "key": KEY, "enabled": False}},
        "tls.enabled may not be false",
    ),
    ({"auth": {"type": "token"}}, "auth.type must be one of plain, external"),
    ({"tls": {"cert": CERTIFICATE}}, "tls.key is needed"),
    ({"connect_timeout_seconds": 11}, "connect_timeout_seconds may not be longer"),
    ({"stream": "x"}, "'stream' is not a key"),
    (
        {"allow_overrides": {"routing_key": ["x" * 256]}},
        "allow_overrides.routing_key must list texts of at most 255 bytes",
    ),
    ({"allow_overrides": {"topic": ["x"]}}, "'allow_overrides.topic' is not a key"),
]


def test_good_configs_make_endpoints(queue: Queue) -> None:
    for number, keys in enumerate(GOOD):
        queue.call("create_endpoint", f"good{number}", "amqp", AMQP | keys)


def test_bad_configs_are_refused_with_the_key_and_a_hint(queue: Queue) -> None:
    for keys, words in BAD:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            queue.call("validate_endpoint_config", "amqp", AMQP | keys)
        assert words in str(refusal.value.diag.message_primary), (keys, refusal.value)
        assert refusal.value.diag.message_hint
    for missing in AMQP:
        rest = {key: value for key, value in AMQP.items() if key != missing}
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"{missing} is needed"):
            queue.call("validate_endpoint_config", "amqp", rest)


def test_the_nearest_key_is_named(queue: Queue) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
        queue.call("validate_endpoint_config", "amqp", AMQP | {"persistant": True})
    assert "Did you mean persistent?" in str(refusal.value.diag.message_hint)


def test_the_password_is_kept_apart(queue: Queue) -> None:
    queue.call("create_endpoint", "orders", "amqp", AMQP | {"auth": PLAIN})
    shown = queue.one("select config from menzil.endpoints")["auth"]
    assert shown == PLAIN | {"password": {"$secret": True}}
    queue.call("alter_endpoint", "orders", AMQP | {"routing_key": "orders.old", "auth": shown})
    (row,) = queue.rows("delivery_configs", ["orders"])
    assert row.config["auth"] == PLAIN
    assert json.dumps("canary-word")[1:-1] not in queue.one("select string_agg(e::text, '') from menzil.event_log e")
