"""The deny list: our own, written out, because what a library calls global is not what may be connected to.

Kinds of closed networks, and what opens them:

    internal   the setting http_allow_internal_urls, or the network is listed in http_allowed_networks
    special    listed in http_allowed_networks
    metadata   listed in http_allowed_networks as that one address, /32 or /128: they give credentials to every client
    never      nothing
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple


class Closed(NamedTuple):
    """A network that is closed, and what it is."""

    network: IPv4Network | IPv6Network
    kind: str
    name: str


def _closed(kind: str, names: dict[str, str]) -> list[Closed]:
    return [Closed(ip_network(network), kind, name) for network, name in names.items()]


METADATA = _closed("metadata", {
    "169.254.169.254/32": "a metadata address of cloud providers",
    "169.254.170.2/32": "a metadata address of AWS containers",
    "169.254.170.23/32": "a metadata address of AWS containers",
    "169.254.0.23/32": "a metadata address of Tencent Cloud",
    "100.100.100.200/32": "a metadata address of Alibaba Cloud",
    "168.63.129.16/32": "a metadata address of Azure",
    "192.0.0.192/32": "a metadata address of Oracle Cloud",
    "fd00:ec2::254/128": "a metadata address of AWS",
    "fd00:ec2::23/128": "a metadata address of AWS containers",
    "fd20:ce::254/128": "a metadata address of Google Cloud",
    "fe80::a9fe:a9fe/128": "a metadata address of OpenStack",
})  # fmt: skip

NEVER = _closed("never", {
    "0.0.0.0/8": "an address of this host on this network",
    "224.0.0.0/4": "a multicast address",
    "255.255.255.255/32": "the broadcast address",
    "240.0.0.0/4": "a reserved address",
    "::/128": "the unspecified address",
    "ff00::/8": "a multicast address",
})  # fmt: skip

INTERNAL = _closed("internal", {
    "127.0.0.0/8": "a loopback address",
    "10.0.0.0/8": "a private address",
    "172.16.0.0/12": "a private address",
    "192.168.0.0/16": "a private address",
    "100.64.0.0/10": "an address shared behind a carrier's NAT",
    "::1/128": "a loopback address",
    "fc00::/7": "a private address",
    "fec0::/10": "a site-local address",
})  # fmt: skip

SPECIAL = _closed("special", {
    "169.254.0.0/16": "a link-local address",
    "192.0.0.0/24": "an address kept for protocols",
    "192.0.2.0/24": "an address for documentation",
    "198.51.100.0/24": "an address for documentation",
    "203.0.113.0/24": "an address for documentation",
    "198.18.0.0/15": "an address for benchmarks",
    "192.88.99.0/24": "an address of 6to4 relays",
    "fe80::/10": "a link-local address",
    "64:ff9b:1::/48": "an address of a local NAT64",
    "100::/64": "a discarded address",
    "100:0:0:1::/64": "a dummy address",
    "2001:2::/48": "an address for benchmarks",
    "2001:10::/28": "an identifier and no address",
    "2001:20::/28": "an identifier and no address",
    "2001:30::/28": "an identifier and no address",
    "2001:db8::/32": "an address for documentation",
    "3fff::/20": "an address for documentation",
    "5f00::/16": "a segment identifier and no address",
})  # fmt: skip

#: In the order in which they are asked: an address that is several things is the most dangerous of them.
CLOSED: tuple[Closed, ...] = (*METADATA, *NEVER, *INTERNAL, *SPECIAL)

#: Addresses of version 6 that have been assigned, and those of the well-known NAT64.
GLOBAL_6 = (IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96"))
UNASSIGNED_6 = Closed(IPv6Network("::/0"), "special", "no address of the public network")

# Kept for protocols and never the address of a host, except Teredo, which is unwrapped.
PROTOCOLS_6 = Closed(IPv6Network("2001::/23"), "special", "an address kept for protocols")
TEREDO = IPv6Network("2001::/32")
