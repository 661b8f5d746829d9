"""Reads a URL once, strictly. What two parsers might read differently is refused, never repaired.

The sender uses the parts of the Target, not the text, so there is no second parser that could disagree.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from menzil.deliver.guard.errors import RefusedUrlError

MAX_LENGTH = 2048
DEFAULT_PORTS = {"http": 80, "https": 443}

_ALLOWED = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")
_SHAPE = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?][^\[\]]*)?",
    re.IGNORECASE,
)
_SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_USER = re.compile(r"[A-Za-z]+://[^/?#]*@")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes. Its repr leaves the path out: that may hold a token."""

    scheme: str
    host: str  # lower case, an address of version 6 without its brackets
    port: int
    authority: str  # for the Host header
    path_and_query: str = field(repr=False)
    literal: IPv4Address | IPv6Address | None = None  # the host, when it is an address and no name


def read_url(url: str, *, allow_http: bool) -> Target:
    """Return its parts, or raise RefusedUrlError."""
    if len(url) > MAX_LENGTH:
        raise RefusedUrlError(f"The URL is longer than {MAX_LENGTH} characters.")
    if not _ALLOWED.fullmatch(url):
        raise RefusedUrlError("The URL has a character that a URL may not have.")
    if _USER.match(url):
        raise RefusedUrlError("The URL carries a user name or password.")
    if "#" in url:
        raise RefusedUrlError("The URL has a fragment.")
    parts = _SHAPE.fullmatch(url)
    if parts is None:
        raise RefusedUrlError("The URL is not http:// or https://, a host, an optional port and a path.")
    scheme = parts["scheme"].lower()
    port = int(parts["port"]) if parts["port"] else DEFAULT_PORTS[scheme]
    if not 1 <= port <= 65535:
        raise RefusedUrlError("The URL has a port outside 1 to 65535.")
    literal = _literal(parts["host"])
    host = str(literal) if literal else _name(parts["host"].lower())
    if scheme == "http" and not allow_http:
        raise RefusedUrlError("The URL is not https://, and the setting http_allow_http is off.")
    shown = f"[{host}]" if isinstance(literal, IPv6Address) else host
    authority = shown if port == DEFAULT_PORTS[scheme] else f"{shown}:{port}"
    rest = parts["rest"] or "/"
    return Target(scheme, host, port, authority, rest if rest[0] == "/" else f"/{rest}", literal)


def read_server(text: str, default_port: int) -> Target:
    """Read `host` or `host:port` of a broker, or raise RefusedUrlError."""
    parts = _SERVER.fullmatch(text)
    if parts is None:
        raise RefusedUrlError("A server of the config is not written as host or host:port.")
    port = int(parts["port"] or default_port)
    if not 1 <= port <= 65535:
        raise RefusedUrlError("A server of the config has a port outside 1 to 65535.")
    literal = _literal(parts["host"])
    host = str(literal) if literal else _name(parts["host"].lower())
    shown = f"[{host}]" if isinstance(literal, IPv6Address) else host
    return Target("tcp", host, port, f"{shown}:{port}", "", literal)


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    """Read a host that is an address. A number in any other spelling than a.b.c.d is refused: some read it as one."""
    try:
        if host[0] == "[":
            return IPv6Address(host[1:-1])
        if _NUMBER.fullmatch(host.lower().removesuffix(".").rpartition(".")[2]):
            return IPv4Address(host)
    except AddressValueError:
        raise RefusedUrlError("The host of the URL is a number, but no address in its usual spelling.") from None
    return None


def _name(host: str) -> str:
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise RefusedUrlError("The host of the URL cannot exist: each label has 1 to 63 characters, the last no dot.")
    if not all(_is_plain(label) for label in labels if label.startswith("xn--")):
        raise RefusedUrlError("The host of the URL has a punycode label that stands for another one.")
    return host


def _is_plain(label: str) -> bool:
    """Whether a punycode label is the only spelling of what it says: not of plain letters, not of full-width digits."""
    try:
        said = label[4:].encode("ascii").decode("punycode")
        again = said.encode("punycode").decode("ascii")
    except (UnicodeError, OverflowError):
        return False
    return not said.isascii() and again == label[4:] and unicodedata.normalize("NFKC", said).lower() == said
