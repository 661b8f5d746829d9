"""The protocol `redis`: a batch is one write of XADD commands, and every entry is acknowledged by its id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from menzil.deliver.broker.protocol import Broker
from menzil.deliver.guard import Target, read_server
from menzil.deliver.redis.session import RedisSession

PORT = 6379


class Redis(Broker):
    """Delivers to streams."""

    session = RedisSession

    def targets(self, config: Mapping[str, Any]) -> tuple[Target, ...]:
        """Return the one server."""
        return (target(config),)


def target(config: Mapping[str, Any]) -> Target:
    """Return the server of a config."""
    host = config["host"]
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return read_server(f"{shown}:{int(config.get('port') or PORT)}", PORT)
