"""Which names the console answers to. A page elsewhere may let its own name point to 127.0.0.1 (DNS rebinding)."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether a server that listens at this host is reached from this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def bare(host: str) -> str:
    """The name in a Host header, without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


class Hosts:
    """The list of names; None answers to every name."""

    def __init__(self, names: Iterable[str] | None) -> None:
        self._names = None if names is None else LOOPBACK | {bare(name) for name in names}

    def allows(self, header: str) -> bool:
        """Whether a request with this Host header is answered."""
        if self._names is None:
            return True
        name = bare(header).rstrip(".")
        return name in self._names
