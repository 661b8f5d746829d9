"""Which addresses are open, and what opens the others."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menzil.deliver.guard import Guard

OPEN = [
    *("8.8.8.8", "1.1.1.1", "93.184.216.34", "9.255.255.255", "11.0.0.0", "126.255.255.255", "128.0.0.0", "172.15.0.1"),
    *("172.32.0.0", "192.167.0.1", "192.169.0.1", "100.63.255.255", "100.128.0.0", "169.253.0.1", "198.17.0.1"),
    *("198.20.0.0", "223.255.255.255", "192.0.1.0", "2606:4700::1111", "2a00:1450::1", "64:ff9b::808:808"),
    *("2002:808:808::1", "::ffff:8.8.8.8", "2001:0:808:808:0:ffff:f7f7:f7f7", "2001:4860:4860::8888"),
    *("2001:200::1", "2606:4700::5efe:8.8.8.8"),
]
INTERNAL = ["127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "::1", "fd00::1", "fec0::1"]
WRAPPED = ["::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::1", "2606:4700::5efe:10.0.0.1"]
METADATA = ["169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fe80::a9fe:a9fe"]
SPECIAL = ["169.254.7.7", "fe80::1", "192.0.2.1", "198.18.0.1", "2001:db8::1", "4000::1", "64:ff9b:1::1", "::10.0.0.1"]
NEVER = ["0.0.0.0", "0.9.9.9", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "ff02::1", "64:ff9b::e000:1"]


def guard(*, internal: bool = False, listed: str = "") -> Guard:
    return Guard(allow_internal=internal, allowed_networks=[ip_network(text) for text in listed.split()])


@pytest.mark.parametrize("address", OPEN)
def test_addresses_of_the_public_network_are_open(address: str) -> None:
    assert guard().judge(address) is None


@pytest.mark.parametrize("address", [*INTERNAL, *WRAPPED, *METADATA, *SPECIAL, *NEVER])
def test_other_addresses_are_closed(address: str) -> None:
    assert guard().judge(address)


@pytest.mark.parametrize("address", [*INTERNAL, *WRAPPED])
def test_allowing_internal_urls_opens_private_and_loopback_addresses_in_any_wrapping(address: str) -> None:
    assert guard(internal=True).judge(address) is None


@pytest.mark.parametrize("address", [*METADATA, *SPECIAL, *NEVER])
def test_allowing_internal_urls_opens_nothing_else(address: str) -> None:
    assert guard(internal=True).judge(address)


def test_a_listed_network_opens_itself_and_nothing_beside() -> None:
    listed = guard(listed="10.1.0.0/16 fd00:1::/32 169.254.7.0/24")
    for address in ["10.1.2.3", "fd00:1::5", "169.254.7.7", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3"]:
        assert listed.judge(address) is None, address
    for address in ["10.2.0.1", "fd00:2::5", "169.254.8.1", "127.0.0.1", "::ffff:10.2.0.1", "2002:a02:1::1"]:
        assert listed.judge(address), address


def test_a_metadata_address_opens_only_when_it_is_listed_itself() -> None:
    everything = guard(internal=True, listed="0.0.0.0/0 ::/0 169.254.0.0/16")
    for address in METADATA:
        assert everything.judge(address), address
    assert guard(listed="169.254.169.254/32").judge("169.254.169.254") is None
    assert guard(listed="fd00:ec2::254/128").judge("fd00:ec2::254") is None


@pytest.mark.parametrize("address", NEVER)
def test_nothing_opens_addresses_that_are_nobodys(address: str) -> None:
    assert guard(internal=True, listed=f"0.0.0.0/0 ::/0 {address}").judge(address)


@given(st.ip_addresses(v=4))
def test_wrapping_an_address_never_opens_it(inner: IPv4Address) -> None:
    judge = guard().judge
    if judge(inner) is None:
        return
    number, inverted = int(inner), ~int(inner) & 0xFFFFFFFF
    for wrapped in [
        0xFFFF << 32 | number,
        number,
        0x64FF9B << 96 | number,
        0x2002 << 112 | number << 80,
        0x20010000 << 96 | number << 64 | 0xF7F7F7F7,
        0x20010000 << 96 | 0x08080808 << 64 | inverted,
        0x26064700 << 96 | 0x5EFE << 32 | number,
        0x26064700 << 96 | 0x02005EFE << 32 | number,
    ]:
        assert judge(IPv6Address(wrapped)), IPv6Address(wrapped)


@given(st.ip_addresses())
def test_what_python_calls_private_or_reserved_is_closed_here_too(address: IPv4Address | IPv6Address) -> None:
    if isinstance(address, IPv6Address) and address.sixtofour is not None:
        return  # Python calls all of 6to4 global or none of it, by version
    if address.is_private or address.is_reserved or address.is_multicast or address.is_link_local:
        translated = isinstance(address, IPv6Address) and (address.ipv4_mapped or address in ip_network("64:ff9b::/96"))
        assert translated or guard().judge(address), address
    assert guard().judge(ip_address(str(address))) == guard().judge(str(address))
