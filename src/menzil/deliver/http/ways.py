"""How to get to a URL: the route of its connections, and whose addresses have to be judged."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from menzil.deliver.guard import Guard, Target
from menzil.deliver.http.tls import Contexts, fingerprint
from menzil.deliver.wire import Proxy, Route


@dataclass(frozen=True, slots=True)
class Way:
    """To one URL."""

    target: Target
    route: Route = field(repr=False)
    proxy: Target | None = None
    #: What stands before the path in the request line: a proxy that passes on plain HTTP needs the whole URL.
    prefix: str = ""
    proxy_authorization: str | None = field(default=None, repr=False)


class Ways:
    """Reads URLs. Endpoints that differ in nothing but their paths share connections."""

    def __init__(self, guard: Guard, contexts: Contexts) -> None:
        self.guard = guard
        self._contexts = contexts
        self._routes: WeakValueDictionary[tuple[Any, ...], Route] = WeakValueDictionary()

    def to(self, url: str, config: Mapping[str, Any], *, system: bool = False) -> Way:
        """Return the way to a URL under the TLS and proxy of a config. Raises RefusedUrlError, RefusedError."""
        target = self.guard.parse(url)
        tls = config.get("tls")
        secure = target.scheme == "https"
        given = config.get("proxy")
        proxy = self._proxy(given) if given else None
        key = (target.host, target.port, secure and (fingerprint(tls), system), proxy)
        route = self._routes.get(key)
        if route is None:
            context = self._contexts.of(tls, system=system) if secure else None
            route = self._routes[key] = Route(target.host, target.port, context, proxy)
        if given is None or proxy is None:
            return Way(target, route)
        via = self.guard.parse(given["url"], proxy=True)
        if secure:
            return Way(target, route, via)
        return Way(target, route, via, f"http://{target.authority}", proxy.authorization)

    def _proxy(self, given: Mapping[str, Any]) -> Proxy:
        via = self.guard.parse(given["url"], proxy=True)
        authorization = None
        if "username" in given:
            words = f"{given['username']}:{given.get('password', '')}"
            authorization = "Basic " + b64encode(words.encode()).decode()
        return Proxy(via.host, via.port, self._contexts.of(None) if via.scheme == "https" else None, authorization)
