"""Judges one address: what it is, and every address of version 4 that it carries to a gateway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from menzil.deliver.guard.networks import CLOSED, GLOBAL_6, PROTOCOLS_6, TEREDO, UNASSIGNED_6, Closed

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

_MAPPED = IPv6Network("::ffff:0:0/96")
_COMPATIBLE = IPv6Network("::/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_ISATAP = (0x00005EFE, 0x02005EFE)
_MASK = 0xFFFFFFFF


class Judge:
    """What the settings leave open. Never changes: new settings are a new judge."""

    def __init__(self, *, allow_internal: bool, allowed_networks: Iterable[IpNetwork]) -> None:
        self._allow_internal = allow_internal
        self._allowed = tuple(allowed_networks)

    def judge(self, address: IpAddress) -> str | None:
        """Say why a delivery may not connect to this address, or None."""
        if isinstance(address, IPv6Address) and address in _MAPPED:
            # The kernel connects to the inner one: the spelling adds nothing.
            address = IPv4Address(int(address) & _MASK)
        reason = self._closed(address)
        if reason is not None or isinstance(address, IPv4Address):
            return reason
        for way, inner in carried(address):
            reason = self._closed(inner)
            if reason is not None:
                return f"{way} to {inner}, {reason}"
        return None

    def _closed(self, address: IpAddress) -> str | None:
        closed = what_is(address)
        return None if closed is None or self._opens(closed, address) else closed.name

    def _opens(self, closed: Closed, address: IpAddress) -> bool:
        if closed.kind == "internal" and self._allow_internal:
            return True
        listed = [network for network in self._allowed if network.version == address.version and address in network]
        if closed.kind == "metadata":
            return any(network.prefixlen == network.max_prefixlen for network in listed)
        return closed.kind != "never" and bool(listed)


def what_is(address: IpAddress) -> Closed | None:
    """Return the closed network that an address is in, or None for an address of the public network."""
    for closed in CLOSED:
        if closed.network.version == address.version and address in closed.network:
            return closed
    if isinstance(address, IPv4Address):
        return None
    if not _in_any(address, GLOBAL_6):
        return UNASSIGNED_6
    return PROTOCOLS_6 if address in PROTOCOLS_6.network and address not in TEREDO else None


def carried(address: IPv6Address) -> Iterator[tuple[str, IPv4Address]]:
    """Yield the addresses of version 4 inside one of version 6, each with the way a packet would take there."""
    number = int(address)
    if address in _NAT64:
        yield "a NAT64 address", IPv4Address(number & _MASK)
    elif address in _COMPATIBLE and not address.is_loopback:
        yield "an IPv4-compatible address", IPv4Address(number & _MASK)
    elif address in _SIX_TO_FOUR:
        yield "a 6to4 address", IPv4Address(number >> 80 & _MASK)
    elif address in TEREDO:
        yield "a Teredo address", IPv4Address(number >> 64 & _MASK)  # the server
        yield "a Teredo address", IPv4Address(~number & _MASK)  # the client, whose bits are inverted
    if number >> 32 & _MASK in _ISATAP:
        yield "an ISATAP address", IPv4Address(number & _MASK)


def _in_any(address: IPv6Address, networks: Sequence[IPv6Network]) -> bool:
    return any(address in network for network in networks)
