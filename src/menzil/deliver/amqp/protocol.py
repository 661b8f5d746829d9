"""The protocol `amqp`: a batch is one write of basic.publish, and the server confirms every message by its tag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from menzil.deliver.amqp.session import AmqpSession
from menzil.deliver.broker.protocol import Broker
from menzil.deliver.guard import Target, read_server

PORT, TLS_PORT = 5672, 5671


class Amqp(Broker):
    """Delivers to exchanges."""

    session = AmqpSession

    def targets(self, config: Mapping[str, Any]) -> tuple[Target, ...]:
        """Return the one server."""
        return (target(config),)


def target(config: Mapping[str, Any]) -> Target:
    """Return the server of a config."""
    host, tls = config["host"], config.get("tls")
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    default = TLS_PORT if tls is not None and tls.get("enabled") is not False else PORT
    return read_server(f"{shown}:{int(config.get('port') or default)}", default)
