"""Where an endpoint delivers to, in one word for lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def destination(protocol: str, config: Mapping[str, Any]) -> str | None:
    """Return the URL of an endpoint, or for a broker what reads like one."""
    match protocol:
        case "nats":
            return f"nats://{','.join(config['servers'])}/{config['subject']}"
        case "redis":
            return f"redis://{config['host']}:{config.get('port', 6379)}/{config.get('db', 0)}/{config['stream']}"
        case _:
            return config.get("url")


def hosts(protocol: str, config: Mapping[str, Any]) -> list[str]:
    """Return the hosts that a broker's config names."""
    servers = config.get("servers") if protocol == "nats" else [config.get("host")]
    if not isinstance(servers, list):
        return []
    named = [server for server in servers if isinstance(server, str)]
    return [server if protocol == "redis" else _without_port(server) for server in named]


def _without_port(server: str) -> str:
    return server[1:].partition("]")[0] if server.startswith("[") else server.partition(":")[0]
