"""One console for several databases: each has the pages of a Console of its own, below /db/NAME.

They share who is logged in, and nothing else: each has its own connections, answers and forms. A form is signed for its
database, so that no plan made on a page of one database is carried out in another one.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import psycopg
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from menzil.console.app import Console
from menzil.console.desk import root_of, route_path, url
from menzil.console.guards import RefusedRequestError, guarded
from menzil.console.measuring import Measuring
from menzil.console.mounting import Mounted
from menzil.console.signing import Signer
from menzil.console.texts import slug
from menzil.model.errors import MenzilError, UsageError
from menzil.ops import looking
from menzil.ops.databases import Given, several
from menzil.telemetry.exporters import Exporters

BELOW = "/db/"


class Consoles(Mounted):
    """The operator's seat for several databases: connection strings, or connection strings by name.

    Takes what Console takes but `acts_dsn`.
    """

    def __init__(self, dsn: Given, *, prefix: str = "", secret: str | None = None, **options: Any) -> None:
        if "acts_dsn" in options:
            raise UsageError("acts_dsn is for a console with one database.", hint="let the connection strings act")
        named = several(dsn)
        signer = Signer(secret)
        super().__init__(prefix)
        self._consoles: dict[str, Console] = {}
        first: Console | None = None
        for one in named:
            door = None if first is None else first.desk.door
            shown = Console(one.dsn, signer=signer, door=door, name=one.name, **options)
            first = first or shown
            self._consoles[f"{BELOW}{slug(one.name)}"] = shown
        assert first is not None
        self._first = first
        places = [(one.name, path) for one, path in zip(named, self._consoles, strict=True)]
        for shown in self._consoles.values():
            shown.desk.databases = places
        self._exporters: Exporters | None = None

    def close(self) -> None:
        """Close every connection."""
        if self._exporters is not None:
            self._exporters.close()
        for one in self._consoles.values():
            one.close()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        path = route_path(scope)
        root = root_of(scope)
        below = path[: path.find("/", len(BELOW))] if "/" in path[len(BELOW) :] else path
        if below in self._consoles:
            await self._consoles[below]({**scope, "root_path": root + below}, receive, send)
            return
        request = Request(scope, receive)
        try:
            self._first.check(request)
            response = await self._answer(request, path)
        except RefusedRequestError as refused:
            # In the frame of the first database: its links lead to pages.
            inner = {**scope, "root_path": root + self._first.desk.databases[0][1]}
            response = await self._first.refusal(Request(inner, receive), refused)
        await response(scope, receive, guarded(send, scope))

    async def _answer(self, request: Request, path: str) -> Response:
        desk = self._first.desk
        if path in ("", "/"):
            return RedirectResponse(url(request, f"{desk.databases[0][1]}/"), 307)
        if path == "/healthz":
            return Response(status_code=200 if await self._is_well() else 503)
        if path == "/metrics" and (desk.options.metrics_token is not None or desk.options.metrics_open):
            Measuring(desk).demand(request)
            kind, body = await asyncio.to_thread(self._measure, request.headers.get("accept"))
            return Response(body, headers={"Content-Type": kind})
        raise RefusedRequestError(404, "There is no such page.", "Each database has its pages below /db/NAME/.")

    async def _is_well(self) -> bool:
        """Whether a database answers: one that is down must not take the pages of the others away."""

        def look(shown: Console) -> bool:
            try:
                shown.desk.database.read(lambda run: run(looking.now()), time.monotonic() + 2)
            except (MenzilError, psycopg.Error):
                return False
            return True

        async def one(shown: Console) -> bool:
            try:
                return await shown.desk.ask(("healthz",), lambda: look(shown), 2.5, 0)
            except TimeoutError:
                return False

        return any(await asyncio.gather(*map(one, self._consoles.values())))

    def _measure(self, accept: str | None) -> tuple[str, bytes]:
        if self._exporters is None:
            self._exporters = Exporters({one.desk.name: Measuring(one.desk).run for one in self._consoles.values()})
        return self._exporters.render(accept)
