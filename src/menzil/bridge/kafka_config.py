"""The config of a bridge in the words of librdkafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MECHANISMS = {"plain": "PLAIN", "scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512"}


def options(config: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return what a consumer is made with."""
    auth, tls = config.get("auth") or {}, config.get("tls")
    has_tls = tls is not None and tls.get("enabled") is not False
    found: dict[str, Any] = {
        "bootstrap.servers": ",".join(config["servers"]),
        "client.id": "menzil-bridge",
        "group.id": group,
        "security.protocol": ("SASL_" if auth else "") + ("SSL" if has_tls else "PLAINTEXT"),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # a gap is ours to notice
        "enable.partition.eof": True,
        "allow.auto.create.topics": False,
        "socket.connection.setup.timeout.ms": int(float(config.get("connect_timeout_seconds") or 5) * 1000) + 1000,
        "queued.max.messages.kbytes": 16_384,
        "fetch.wait.max.ms": 100,
    }
    if auth:
        found |= {"sasl.mechanism": _MECHANISMS[auth["type"]]}
        found |= {"sasl.username": auth["username"], "sasl.password": auth["password"]}
    if has_tls and tls is not None:
        pems = {"ssl.ca.pem": tls.get("ca"), "ssl.certificate.pem": tls.get("cert"), "ssl.key.pem": tls.get("key")}
        found |= {name: text for name, text in pems.items() if text}
        if tls.get("verify") is False:
            found["enable.ssl.certificate.verification"] = False
    return found
