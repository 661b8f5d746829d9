"""The Iceberg REST catalog alone, as an ASGI application: the same door as the console's, and no pages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from starlette.requests import Request
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from menzil.console.access import Access
from menzil.console.database import Database
from menzil.console.door import Door
from menzil.console.guards import guarded
from menzil.console.hosts import Hosts
from menzil.console.iceberg import Iceberg, refusal
from menzil.console.signing import Signer
from menzil.console.tokens import read_tokens


class CatalogApp:
    """`tokens` are lines `name:role:sha256`. Without them every request is refused, unless `local` names who it is."""

    def __init__(
        self, dsn: str, *, tokens: Iterable[str] = (), local: Access | None = None, hosts: Sequence[str] = ()
    ) -> None:
        self._database = Database(dsn)
        door = Door(Signer(None), tokens=read_tokens(tokens), authorize=None, local=local)
        self._hosts = Hosts(hosts)
        self._router = Router(Iceberg(self._database, door).routes(), redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await asyncio.to_thread(self._database.close)
            await send({"type": "lifespan.shutdown.complete"})
        elif scope["type"] == "http":
            send = guarded(send, scope)
            host = Request(scope).headers.get("host", "")
            if self._hosts.allows(host):
                await self._router(scope, receive, send)
            else:
                sentence = f"This catalog does not answer to the name {host!r}: name it with --allow-host."
                await refusal(400, sentence)(scope, receive, send)
