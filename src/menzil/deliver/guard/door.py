"""The guard itself: reads URLs, resolves hosts, judges addresses, as the settings say.

A delivery parses its URL, resolves the target, and connects to one of the addresses it was given and to nothing else.
Between judging and connecting the name is not resolved again, so a DNS answer that changes in between changes nothing.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Self

from menzil.deliver.guard.errors import RefusedUrlError
from menzil.deliver.guard.judge import IpAddress, IpNetwork, Judge
from menzil.deliver.guard.resolve import Address, Lookup, Resolver, system_lookup
from menzil.deliver.guard.target import Target, read_url

#: How long judged addresses are used again. Shorter than any retry, long enough for a burst to one endpoint.
FRESH_SECONDS = 2.0
_ROOM = 1024


class Guard:
    """Belongs to one event loop. Its settings never change: `refresh` returns another guard for other settings."""

    def __init__(
        self,
        *,
        allow_internal: bool = False,
        allow_http: bool = True,
        allowed_networks: Iterable[IpNetwork] = (),
        lookup: Lookup = system_lookup,
        names: str = "settings http_allow_internal_urls and http_allowed_networks",
    ) -> None:
        self._names = names  # of the settings that open addresses
        self._rules = (allow_internal, allow_http, tuple(allowed_networks))
        self._judge = Judge(allow_internal=allow_internal, allowed_networks=self._rules[2])
        self._resolver = Resolver(lookup)
        self._targets: dict[tuple[str, bool], Target] = {}
        self._judged: dict[str, tuple[float, list[Address]]] = {}  # host -> until when, addresses

    @classmethod
    def from_settings(cls, settings: Mapping[str, str], *, lookup: Lookup = system_lookup) -> Self:
        """Read http_allow_internal_urls, http_allow_http and http_allowed_networks; what is missing has its default."""
        return cls(
            allow_internal=settings.get("http_allow_internal_urls", "false") == "true",
            allow_http=settings.get("http_allow_http", "true") == "true",
            allowed_networks=_networks(settings.get("http_allowed_networks", "")),
            lookup=lookup,
        )

    @classmethod
    def for_brokers(cls, settings: Mapping[str, str], *, lookup: Lookup = system_lookup) -> Self:
        """Read broker_allowed_networks: brokers live in private networks, which HTTP endpoints must not reach."""
        networks = _networks(settings.get("broker_allowed_networks", ""))
        return cls(allowed_networks=networks, lookup=lookup, names="setting broker_allowed_networks")

    def refresh(self, settings: Mapping[str, str]) -> Self:
        """Return the guard for these settings: this one, or a new one that shares its threads."""
        return self._or(type(self).from_settings(settings))

    def refresh_for_brokers(self, settings: Mapping[str, str]) -> Self:
        """Return the guard of brokers for these settings: this one, or a new one that shares its threads."""
        return self._or(type(self).for_brokers(settings))

    def _or(self, other: Self) -> Self:
        if other._rules == self._rules:
            return self
        other._resolver = self._resolver
        return other

    def parse(self, url: str, *, proxy: bool = False) -> Target:
        """Read a URL strictly, or raise RefusedUrlError. A proxy may be http:// with all settings."""
        target = self._targets.get((url, proxy))
        if target is None:
            target = read_url(url, allow_http=proxy or self._rules[1])
            _make_room(self._targets)
            self._targets[url, proxy] = target
        return target

    def judge(self, address: str | IpAddress) -> str | None:
        """Say why a delivery may not connect to this address, or None."""
        return self._judge.judge(ip_address(address) if isinstance(address, str) else address)

    async def resolve(self, target: Target, deadline_seconds: float) -> list[Address]:
        """Return the addresses to try, in order; the caller connects to these and to no other.

        One address that is not allowed refuses them all (RefusedUrlError): who mixes them means harm, or is mistaken.
        ResolveError says that there is no answer just now.
        """
        known = self._judged.get(target.host)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        if target.literal is not None:
            found, until = [target.literal], float("inf")
        else:
            found = await self._resolver.addresses(target.host, deadline_seconds)
            until = time.monotonic() + FRESH_SECONDS
        for address in found:
            reason = self.judge(address)
            if reason is not None:
                raise RefusedUrlError(_refusal(target, address, reason, self._names))
        _make_room(self._judged)
        self._judged[target.host] = (until, [_to_connect(address) for address in found])
        return self._judged[target.host][1]


def _networks(text: str) -> Iterator[IpNetwork]:
    for part in text.replace(",", " ").split():
        with suppress(ValueError):  # the database refuses what is no network; what came another way opens nothing
            yield ip_network(part)


def _refusal(target: Target, address: IpAddress, reason: str, names: str) -> str:
    said = f"{address} is {reason}" if target.literal else f"{target.host} resolves to {address}, {reason}"
    return f"{said}: deliveries there are not allowed ({names})."


def _to_connect(address: IpAddress) -> Address:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return socket.AF_INET6, str(address)
        address = address.ipv4_mapped
    return socket.AF_INET, str(address)


def _make_room(kept: dict[Any, Any]) -> None:
    # Who has so many destinations at once reads them again now and then.
    if len(kept) >= _ROOM:
        kept.clear()
