"""Which connections are interchangeable: same destination, same name to be checked, same keys, same proxy."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from menzil.deliver.wire.connection import Connection

#: Where to connect to: an address as text, never a name.
Address = tuple[socket.AddressFamily, str]


@dataclass(frozen=True, slots=True)
class Proxy:
    """Who passes requests on for us."""

    host: str
    port: int
    tls: SSLContext | None = field(default=None, repr=False)  # for the way to the proxy itself
    authorization: str | None = field(default=None, repr=False)


class Route:
    """Where a connection leads, but for the address, which is judged anew for every request."""

    __slots__ = ("__weakref__", "authority", "host", "idle", "idle_count", "port", "proxy", "tls")

    def __init__(self, host: str, port: int, tls: SSLContext | None, proxy: Proxy | None = None) -> None:
        self.host = host
        self.port = port
        self.tls = tls
        self.proxy = proxy
        self.authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.idle: dict[str, list[Connection]] = {}  # by address, the last used one last
        self.idle_count = 0
