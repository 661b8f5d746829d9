"""Whatever the spelling, no delivery reaches an address that is closed, and nothing but a refusal is raised."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from ipaddress import IPv4Address, IPv6Address

from hypothesis import given
from hypothesis import strategies as st

from menzil.deliver.guard import Guard, RefusedUrlError, ResolveError
from tests.fuzz.pace import examples

#: Written down here once more, so that a mistake in the guard's own list is not repeated by its test.
CLOSED_4 = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"),
    *("168.63.129.16/32",),
]
CLOSED_6 = ["::/128", "::1/128", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "2001:db8::/32"]
NETWORKS = [ipaddress.ip_network(text) for text in [*CLOSED_4, *CLOSED_6]]
WRAPPINGS = ["::ffff:0:0/96", "64:ff9b::/96", "::/96"]

closed_4 = st.sampled_from(CLOSED_4).flatmap(lambda text: st.ip_addresses(network=text))
closed_6 = st.one_of(
    st.sampled_from(CLOSED_6).flatmap(lambda text: st.ip_addresses(network=text)),
    st.tuples(st.sampled_from(WRAPPINGS), closed_4).map(
        lambda pair: IPv6Address(int(ipaddress.ip_network(pair[0]).network_address) | int(pair[1]))
    ),
    closed_4.map(lambda inner: IPv6Address(0x2002 << 112 | int(inner) << 80)),
)


def is_closed(address: str) -> bool:
    found = ipaddress.ip_address(address)
    return any(found in network for network in NETWORKS if network.version == found.version)


def spellings_4(address: IPv4Address | IPv6Address) -> list[str]:
    """Return how somebody somewhere writes it."""
    number, parts = int(address), [int(part) for part in str(address).split(".")]
    return [
        str(address),
        str(number),
        hex(number),
        hex(number).upper(),
        f"0{number:o}",
        ".".join(f"0{part:o}" for part in parts),
        ".".join(hex(part) for part in parts),
        ".".join(f"{part:03d}" for part in parts),
        f"{parts[0]}.{number & 0xFFFFFF}",
        f"{parts[0]}.{parts[1]}.{number & 0xFFFF}",
        f"{address}.",
        f"[::ffff:{address}]",
        f"[0:0:0:0:0:FFFF:{number >> 16:x}:{number & 0xFFFF:X}]",
        f"[::{address}]",
        f"[64:ff9b::{address}]",
        str(address).replace(".", "。"),
        "".join(chr(ord(char) + 0xFEE0) for char in str(address)),
        str(address).replace(".", "%2e"),
        f"user@{address}",
        f"example.com@{address}",
        f"{address}%00.example.com",
        f"{address}\\@example.com",
        f"{address}\t",
    ]


def spellings_6(address: IPv4Address | IPv6Address) -> list[str]:
    return [
        f"[{address}]",
        f"[{address.exploded}]",
        f"[{str(address).upper()}]",
        f"[{address}%25eth0]",
        f"[{address}%eth0]",
        str(address),
    ]


hosts = st.one_of(
    closed_4.flatmap(lambda address: st.sampled_from(spellings_4(address))),
    closed_6.flatmap(lambda address: st.sampled_from(spellings_6(address))),
)
urls = st.builds(
    "{}://{}{}{}".format,
    st.sampled_from(["http", "https", "HTTP", "hTtPs", "ftp", "file", "gopher"]),
    hosts,
    st.sampled_from(["", ":80", ":0", ":65536", ":"]),
    st.sampled_from(["", "/", "/a?b=c", "?x", "#f", "/\r\nX: y"]),
)


def reached(url: str, answers: list[str]) -> list[str] | None:
    """Return the addresses a delivery would connect to, or None when it is refused."""
    guard = Guard(lookup=lambda _: answers)
    try:
        target = guard.parse(url)
        found = asyncio.run(guard.resolve(target, 5))
    except (RefusedUrlError, ResolveError):
        return None
    return [address for _, address in found]


@examples(250)
@given(urls)
def test_no_spelling_of_a_closed_address_gets_through(url: str) -> None:
    # A name server that would send it to an open address: only what is refused as a literal is refused.
    found = reached(url, ["93.184.216.34"])
    assert found is None or not any(map(is_closed, found))


@examples(200)
@given(urls | st.text() | st.from_regex(r"https?://[^/]{0,40}/?", fullmatch=True))
def test_what_the_system_would_read_as_a_number_is_never_taken_for_a_name(url: str) -> None:
    try:
        target = Guard().parse(url)
    except RefusedUrlError:
        return
    if target.literal is not None:
        return
    try:
        read = socket.inet_aton(target.host)
    except OSError:
        return
    raise AssertionError(f"{url!r} is a name here and {IPv4Address(read)} to the resolver")


@examples(200)
@given(
    st.lists(st.one_of(closed_4, closed_6, st.ip_addresses()).map(str), min_size=1, max_size=4),
    st.sampled_from(["", "%eth0", "%1"]),
)
def test_whatever_a_name_server_answers_one_closed_address_refuses_them_all(answers: list[str], zone: str) -> None:
    given_back = [f"{answer}{zone}" if ":" in answer else answer for answer in answers]
    found = reached("https://example.com/", given_back)
    assert found is None or not any(map(is_closed, answers))


@examples(200)
@given(st.lists(st.text(max_size=20), max_size=3))
def test_nonsense_from_a_name_server_is_no_address(answers: list[str]) -> None:
    found = reached("https://example.com/", answers)
    assert found is None or not any(map(is_closed, found))
