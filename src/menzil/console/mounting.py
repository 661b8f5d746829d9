"""How a console stands in the world: below a prefix, and with a beginning and an end."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable

from starlette.types import Receive, Scope, Send

from menzil.console.desk import root_of, route_path
from menzil.console.render import prepare
from menzil.model.errors import UsageError


class Mounted(ABC):
    """An ASGI application below a prefix: the scope that `serve` gets says where."""

    def __init__(self, prefix: str) -> None:
        self._prefix = check_prefix(prefix)

    @abstractmethod
    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "lifespan":
            await live(receive, send, self.close)
        elif scope["type"] == "http":
            await self.serve(below_prefix(whole(scope), self._prefix), receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})


def whole(scope: Scope) -> Scope:
    """The scope with the prefix of the application around the console in its path.

    A proxy may strip a prefix that the application knows, as FastAPI(root_path=...) does. Then the path of what is
    mounted there does not begin with its root path, and no route would match.
    """
    outer, path = str(scope.get("app_root_path", "")).rstrip("/"), str(scope["path"])
    inner = root_of(scope).removeprefix(outer)
    if not outer or not inner or path.startswith(f"{outer}{inner}") or not path.startswith(inner):
        return scope
    return {**scope, "path": outer + path}


def check_prefix(prefix: str) -> str:
    """Refuse what is not a path."""
    if prefix and (not prefix.startswith("/") or prefix.endswith("/")):
        raise UsageError("The prefix of a console begins with a slash and does not end with one.")
    return prefix


def below_prefix(scope: Scope, prefix: str) -> Scope:
    """The scope as if we were mounted at our prefix, whether the proxy in front keeps or strips it."""
    if not prefix:
        return scope
    outer, path = root_of(scope), route_path(scope)
    kept = path == prefix or path.startswith(f"{prefix}/")
    return {**scope, "root_path": outer + prefix, "path": outer + (path if kept else prefix + path)}


async def live(receive: Receive, send: Send, close: Callable[[], None]) -> None:
    """The lifespan of an application: templates are compiled before it listens, connections closed at the end."""
    await receive()
    await asyncio.to_thread(prepare)
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await asyncio.to_thread(close)
    await send({"type": "lifespan.shutdown.complete"})
