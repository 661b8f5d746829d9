"""Says at once what the first delivery would find out: that the settings keep deliveries away from an address."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from menzil.cli.database import Database
from menzil.cli.show import say
from menzil.deliver.guard import Guard
from menzil.ops import upkeep
from menzil.watch.destination import hosts

_HTTP = ("http_allow_internal_urls", "http_allowed_networks")
_BROKERS = ("broker_allowed_networks",)


def warn_of_closed(db: Database, protocol: str, config: dict[str, Any]) -> None:
    """Warn of an address that the settings close. Names are not resolved: a worker may see other addresses."""

    def settings(names: tuple[str, ...]) -> Mapping[str, str]:
        return {name: db.run(upkeep.setting(name)) for name in names}

    if protocol in ("amqp", "kafka", "mqtt", "nats", "redis"):
        guard, named = Guard.for_brokers(settings(_BROKERS)), hosts(protocol, config)
    else:
        guard, named = Guard.from_settings(settings(_HTTP)), _host(config)
    for address in [found for host in named if (found := _address(host)) is not None]:
        reason = guard.judge(address)
        if reason is None:
            continue
        say(f"{address} is {reason}: deliveries there are refused until a setting allows them.")
        network = f"{address}/{address.max_prefixlen}"
        how = "http_allow_internal_urls on" if protocol == "http" else f"broker_allowed_networks {network}"
        say(f"hint: menzil settings set {how}")
        return


def _host(config: Mapping[str, Any]) -> list[str]:
    try:
        return [urlsplit(str(config.get("url", ""))).hostname or ""]
    except ValueError:
        return []


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return None
