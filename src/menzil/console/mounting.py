"""How a console stands in the world: below a prefix, and with a beginning and an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import Receive, Scope, Send

from menzil.console.desk import route_path
from menzil.console.render import prepare
from menzil.model.errors import UsageError


def check_prefix(prefix: str) -> str:
    """Refuse what is not a path."""
    if prefix and (not prefix.startswith("/") or prefix.endswith("/")):
        raise UsageError("The prefix of a console begins with a slash and does not end with one.")
    return prefix


def below_prefix(scope: Scope, prefix: str) -> Scope:
    """The scope as if we were mounted at our prefix, whether the proxy in front keeps or strips it."""
    if not prefix:
        return scope
    outer, path = str(scope.get("root_path", "")).rstrip("/"), route_path(scope)
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
