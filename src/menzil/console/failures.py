"""Failed logins: five a minute from one address, then it has to wait."""

from __future__ import annotations

import time
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address

MOST, WINDOW = 5, 60.0

#: Addresses that are remembered; the one that failed longest ago is forgotten first.
MOST_ADDRESSES = 10_000


class Failures:
    """Times of failed logins by address; an IPv6 network of 64 bits counts as one."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, list[float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Seconds until this address may try again; 0 when it may now."""
        times = self._recent(address)
        return max(times[0] + WINDOW - time.monotonic(), 0.1) if len(times) >= MOST else 0.0

    def add(self, address: str) -> None:
        """Count a failure."""
        self._times[_group(address)] = [*self._recent(address), time.monotonic()][-MOST:]
        self._times.move_to_end(_group(address))
        while len(self._times) > MOST_ADDRESSES:
            self._times.popitem(last=False)

    def _recent(self, address: str) -> list[float]:
        return [at for at in self._times.get(_group(address), []) if time.monotonic() - at < WINDOW]


def _group(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return str(IPv6Address(int(found) >> 64 << 64)) if isinstance(found, IPv6Address) else str(found)
