"""From the config of an endpoint to the properties of librdkafka."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from json import dumps
from typing import Any

from menzil.deliver.broker.plan import Plan

#: Properties that `options` of a config may set; the database refuses every other one. Files, libraries, commands and
#: addresses are not among them.
OPTIONS = frozenset({
    "batch.size", "broker.address.family", "client.rack", "compression.level", "metadata.max.age.ms",
    "socket.keepalive.enable",
})  # fmt: skip
MOST_BYTES = 1_000_000
_MECHANISMS = {
    "plain": "PLAIN", "scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512", "oauth2": "OAUTHBEARER",
}  # fmt: skip

Properties = dict[str, str | int | bool | float]


def properties(plan: Plan) -> Properties:
    """Return what a producer of this endpoint is made with, callbacks aside."""
    config = plan.config
    milliseconds = round(plan.seconds * 1000)
    found: Properties = {
        name: value for name, value in (config.get("options") or {}).items() if name in OPTIONS
    }  # the database has checked the values
    found |= {
        "bootstrap.servers": ",".join(target.authority for target in plan.targets),
        "client.id": config.get("client_id") or "menzil",
        "acks": "all",
        "enable.idempotence": True,
        # librdkafka gives up when we do: a message must not be written after it was handed to another worker.
        "delivery.timeout.ms": milliseconds,
        "request.timeout.ms": max(1, milliseconds // 2),
        "socket.timeout.ms": max(10, milliseconds),
        "socket.connection.setup.timeout.ms": max(1000, round(plan.connect_seconds * 1000)),
        "reconnect.backoff.max.ms": 1000,
        "linger.ms": config.get("linger_ms", 2),
        "compression.type": config.get("compression") or "lz4",
        "partitioner": config.get("partitioner") or "murmur2_random",
        "message.max.bytes": max(1000, int(config.get("max_message_bytes") or MOST_BYTES)),
        "log_level": 3,
    }
    return found | _tls(plan) | _login(config.get("auth") or {}, secure=plan.tls is not None)


def _tls(plan: Plan) -> Properties:
    if plan.tls is None:
        return {"security.protocol": "PLAINTEXT"}
    tls: Mapping[str, Any] = plan.config.get("tls") or {}
    found: Properties = {"security.protocol": "SSL"}
    for key, name in (("ca", "ssl.ca.pem"), ("cert", "ssl.certificate.pem"), ("key", "ssl.key.pem")):
        if key in tls:
            found[name] = tls[key]
    if tls.get("verify") is False:
        found |= {"enable.ssl.certificate.verification": False, "ssl.endpoint.identification.algorithm": "none"}
    return found


def _login(auth: Mapping[str, Any], *, secure: bool) -> Properties:
    if not auth:
        return {}
    found: Properties = {
        "security.protocol": "SASL_SSL" if secure else "SASL_PLAINTEXT",
        "sasl.mechanism": _MECHANISMS[auth["type"]],
    }
    if auth["type"] != "oauth2":  # whose token comes from a callback
        found |= {"sasl.username": auth["username"], "sasl.password": auth["password"]}
    return found


def fingerprint(found: Properties, auth: Mapping[str, Any]) -> str:
    """Return the name of a producer: endpoints with equal properties and equal logins share one."""
    return sha256(dumps([found, auth], sort_keys=True).encode()).hexdigest()
