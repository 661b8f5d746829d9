"""The config of an endpoint of MQTT: every key is checked, and secrets are kept apart."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.sql.queue import Queue
from tests.sql.test_broker_config import CERTIFICATE

MQTT: dict[str, Any] = {"host": "broker.example.com", "topic": "shop/orders"}
GOOD: list[dict[str, Any]] = [
    {},
    {"port": 8883, "version": "5", "qos": 2, "retain": True, "client_id": "shop", "keepalive_seconds": 60},
    {"version": "3.1.1", "qos": 1, "cloudevents": {"mode": "structured"}, "host": "2001:db8::1"},
    {"qos": 0, "allow_loss": True},
    {"no_subscribers": "retry", "inflight": 65535, "headers": {"X-A": "b"}, "cloudevents": {"mode": "binary"}},
    {"auth": {"username": "u"}, "tls": {"ca": CERTIFICATE}, "max_concurrency": 5, "topic": "Ürün/sipariş"},
    {"auth": {"username": "u", "password": "p"}, "rate_limit": {"count": 1, "interval_ms": 1}},
    {"timeout_seconds": 2, "connect_timeout_seconds": 1, "no_subscribers": "ok"},
    {"allow_overrides": {"topic": ["shop/orders/eu"]}},
]
BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"host": "mqtt://a"}, "host must be a host name", ""),
    ({"host": "a:1883"}, "host must be", ""),
    ({"port": 0}, "port must be", ""),
    ({"topic": ""}, "topic must be a text of 1 to 1024", ""),
    ({"topic": "orders/+"}, "topic may not contain + or #", "subscribers"),
    ({"topic": "orders/#"}, "topic may not contain", ""),
    ({"topic": "$SYS/x"}, "topic may not begin with $", ""),
    ({"topic": "a\u0001b"}, "topic must be", ""),
    ({"topic": "ü" * 600}, "topic may not have more than 1024 bytes", ""),
    ({"version": 5}, "version must be one of 5, 3.1.1", 'write "5"'),
    ({"version": "3"}, "version must be one of 5, 3.1.1", ""),
    ({"qos": 3}, "qos must be a whole number from 0 to 2", ""),
    ({"qos": "1"}, "qos must be", ""),
    ({"qos": 0}, "qos may not be 0 without allow_loss", "does not acknowledge"),
    ({"qos": 0, "allow_loss": False}, "qos may not be 0", ""),
    ({"allow_loss": True}, "allow_loss goes with qos 0", ""),
    ({"retain": "yes"}, "retain must be true or false", ""),
    ({"client_id": ""}, "client_id must be", ""),
    ({"keepalive_seconds": 0}, "keepalive_seconds must be", ""),
    ({"no_subscribers": "fail"}, "no_subscribers must be one of ok, retry", ""),
    ({"no_subscribers": "retry", "version": "3.1.1"}, "no_subscribers goes with version 5", ""),
    ({"inflight": 65536}, "inflight must be", ""),
    ({"headers": {"a": "b"}, "version": "3.1.1"}, "headers goes with version 5", "payload"),
    ({"cloudevents": {"mode": "binary"}, "version": "3.1.1"}, "cloudevents.mode may not be binary", "structured"),
    ({"auth": {"password": "p"}}, "auth.username is needed", "Add it to the config"),
    ({"headers": {"menzil-type": "x"}}, "headers.menzil-type may not be set", "menzil writes"),
    ({"auth": {"type": "password"}}, "'auth.type' is not a key", ""),
    ({"tls": {"cert": CERTIFICATE}}, "tls.key is needed", ""),
    ({"connect_timeout_seconds": 11}, "connect_timeout_seconds may not be longer", ""),
    ({"topik": "x"}, "'topik' is not a key of the config of an mqtt endpoint", "Did you mean topic?"),
    ({"stream": "x"}, "'stream' is not a key", ""),
    ({"dedup_seconds": 1}, "'dedup_seconds' is not a key", ""),
    ({"allow_overrides": {"topic": ["orders/#"]}}, "allow_overrides.topic must list topics", ""),
    ({"allow_overrides": {"topic": ["$SYS/x"]}}, "allow_overrides.topic must list topics", ""),
]


def test_good_configs_make_endpoints(queue: Queue) -> None:
    for number, keys in enumerate(GOOD):
        queue.call("create_endpoint", f"good{number}", "mqtt", MQTT | keys)


def test_bad_configs_are_refused_with_the_key_and_a_hint(queue: Queue) -> None:
    for keys, words, hint in BAD:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            queue.call("validate_endpoint_config", "mqtt", MQTT | keys)
        assert words in str(refusal.value.diag.message_primary), (keys, refusal.value)
        assert hint in str(refusal.value.diag.message_hint), (keys, refusal.value.diag.message_hint)
    for missing in MQTT:
        rest = {key: value for key, value in MQTT.items() if key != missing}
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"{missing} is needed"):
            queue.call("validate_endpoint_config", "mqtt", rest)


def test_the_password_is_kept_apart(queue: Queue) -> None:
    auth = {"username": "shop", "password": "canary-word"}
    queue.call("create_endpoint", "orders", "mqtt", MQTT | {"auth": auth})
    shown = queue.one("select config from menzil.endpoints")["auth"]
    assert shown == {"username": "shop", "password": {"$secret": True}}
    queue.call("alter_endpoint", "orders", MQTT | {"qos": 2, "auth": shown})
    (row,) = queue.rows("delivery_configs", ["orders"])
    assert row.config["auth"] == auth
    assert "canary" not in queue.one("select string_agg(e::text, '') from menzil.event_log e")
