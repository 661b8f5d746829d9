"""Says at once what the first delivery would find out: that the settings keep deliveries away from an address."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from menzil.cli.database import Database
from menzil.cli.show import say
from menzil.deliver.guard import Guard
from menzil.ops import upkeep

_SETTINGS = ("http_allow_internal_urls", "http_allowed_networks")


def warn_of_closed(db: Database, config: dict[str, Any]) -> None:
    """Warn of a URL whose address the settings close. Names are not resolved: a worker may see other addresses."""
    try:
        host = urlsplit(str(config.get("url", ""))).hostname or ""
        address = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return
    reason = Guard.from_settings({name: db.run(upkeep.setting(name)) for name in _SETTINGS}).judge(address)
    if reason is not None:
        say(f"{address} is {reason}: deliveries there are refused until a setting allows them.")
        say("hint: menzil settings set http_allow_internal_urls on")
