"""The protocol `nats`: a batch is one write of HPUB, and JetStream acknowledges every message with its sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from menzil.deliver.broker.protocol import Broker
from menzil.deliver.guard import Target, read_server
from menzil.deliver.nats.session import NatsSession

PORT = 4222


class Nats(Broker):
    """Delivers to subjects of streams."""

    session = NatsSession
    late_tls = True

    def targets(self, config: Mapping[str, Any]) -> tuple[Target, ...]:
        """Return the servers in their order. Servers that these name by themselves are not connected to."""
        return tuple(read_server(server, PORT) for server in config["servers"])
