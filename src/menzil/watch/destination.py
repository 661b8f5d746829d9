"""Where an endpoint delivers to, in one word for lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote


def destination(protocol: str, config: Mapping[str, Any]) -> str | None:
    """Return the URL of an endpoint, or for a broker what reads like one."""
    match protocol:
        case "amqp":
            tls = config.get("tls")
            secure = tls is not None and tls.get("enabled") is not False
            port = config.get("port", 5671 if secure else 5672)
            names = (
                quote(name, safe="") for name in (config.get("vhost", "/"), config["exchange"], config["routing_key"])
            )
            return f"{'amqps' if secure else 'amqp'}://{config['host']}:{port}/{'/'.join(names)}"
        case "kafka":
            return f"kafka://{','.join(config['servers'])}/{config['topic']}"
        case "mqtt":
            tls = config.get("tls")
            secure = tls is not None and tls.get("enabled") is not False
            port = config.get("port", 8883 if secure else 1883)
            return f"{'mqtts' if secure else 'mqtt'}://{config['host']}:{port}/{config['topic']}"
        case "nats":
            return f"nats://{','.join(config['servers'])}/{config['subject']}"
        case "redis":
            return f"redis://{config['host']}:{config.get('port', 6379)}/{config.get('db', 0)}/{config['stream']}"
        case _:
            return config.get("url")


def hosts(protocol: str, config: Mapping[str, Any]) -> list[str]:
    """Return the hosts that a broker's config names."""
    servers = config.get("servers") if protocol in ("kafka", "nats") else [config.get("host")]
    if not isinstance(servers, list):
        return []
    named = [server for server in servers if isinstance(server, str)]
    return [_without_port(server) if protocol in ("kafka", "nats") else server for server in named]


def _without_port(server: str) -> str:
    return server[1:].partition("]")[0] if server.startswith("[") else server.partition(":")[0]
