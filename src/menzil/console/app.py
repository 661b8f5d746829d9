"""The console as an ASGI application: mountable below any prefix, its pool opened at the first request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from menzil.console.access import PAYLOADS, Access, Payloads
from menzil.console.acting import Acting
from menzil.console.database import Database
from menzil.console.desk import Desk, Options, here, route_path, url
from menzil.console.door import Authorize, Door, LoginNeededError
from menzil.console.entering import Entering
from menzil.console.guards import MOST_BYTES, RefusedRequestError, guarded
from menzil.console.hosts import Hosts
from menzil.console.iceberg import Iceberg
from menzil.console.measuring import Measuring, check_digest
from menzil.console.mounting import Mounted
from menzil.console.pages import all_pages
from menzil.console.programs import Programs
from menzil.console.serving import page_handler, twin_handler
from menzil.console.signing import Signer
from menzil.console.tokens import read_tokens
from menzil.model.errors import UsageError
from menzil.ops.choosing import choose

LOGGER = logging.getLogger("menzil.console")


class Console(Mounted):
    """The operator's seat.

    `authorize(request)` returns an Access, or None to refuse; `tokens` are lines `name:role:sha256`. Without either
    every request is refused, unless `local` names who it is. `acts_dsn` connects as a role that may act; `hosts` are
    the names it answers to besides this machine's, and None where the application around it has checked the name.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        authorize: Authorize | None = None,
        tokens: Iterable[str] = (),
        local: Access | None = None,
        read_only: bool = False,
        acts_dsn: str | None = None,
        payloads: Payloads | None = None,
        hosts: Sequence[str] | None = (),
        prefix: str = "",
        secret: str | None = None,
        metrics_token: str | None = None,
        metrics_open: bool = False,
        trace_url: str | None = None,
        lake: str | None = None,
        signer: Signer | None = None,
        door: Door | None = None,
        name: str = "",
    ) -> None:
        """`signer`, `door` and `name` are for a console among several (console/several.py)."""
        if payloads is not None and payloads not in PAYLOADS:
            raise UsageError(f"{payloads!r} is not a way to show payloads.", hint=f"use one of {', '.join(PAYLOADS)}")
        check_digest(metrics_token)
        found = choose(dsn, "the argument dsn")
        if found is None:
            raise UsageError("The console has no database.", hint="give Console(dsn), or set MENZIL_DSN")
        pages = all_pages()
        signer = signer or Signer(secret)
        door = door or Door(signer, tokens=read_tokens(tokens), authorize=authorize, local=local)
        options = Options(read_only, payloads, metrics_token, metrics_open, trace_url, lake)
        paths = {page.path for page in pages}
        self.desk = self._desk = Desk(Database(found, acts_dsn), door, signer, options, paths, name)
        self._hosts = Hosts(None if authorize is not None and not hosts else hosts)
        super().__init__(prefix)
        self._router = Router(_routes(self._desk), default=self._nothing, redirect_slashes=False)

    @asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:
        """Close the connections at the end; for an application that mounts the console and runs lifespans."""
        del app
        try:
            yield
        finally:
            await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Close every connection."""
        self._desk.database.close()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        send = guarded(send, scope)
        request = Request(scope, receive)
        try:
            self.check(request)
            await self._router(scope, receive, send)
            return
        except LoginNeededError:
            response = self._to_login(request)
        except RefusedRequestError as refused:
            response = await self.refusal(request, refused)
        except HTTPException as error:
            response = await self.refusal(request, RefusedRequestError(error.status_code, error.detail))
        except Exception:
            LOGGER.exception("%s %s failed", request.method, scope["path"])
            sentence, hint = "The console failed at this page.", "Its log has the details."
            response = await self.refusal(request, RefusedRequestError(500, sentence, hint))
        await response(scope, receive, send)

    def check(self, request: Request) -> None:
        """Refuse a request for another name than ours, and one that is too large."""
        host = request.headers.get("host", "")
        if not self._hosts.allows(host):
            hint = "Name it with --allow-host, or in hosts=, if this is the console's own name."
            raise RefusedRequestError(400, f"This console does not answer to the name {host!r}.", hint)
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            raise RefusedRequestError(413, "This request is larger than 1 MB.")

    async def _nothing(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if scope["method"] not in ("GET", "HEAD") and self._desk.options.read_only:
            raise RefusedRequestError(403, "This console is read-only.")
        if route_path(scope) == "":
            await RedirectResponse(url(request, "/"), 307)(scope, receive, send)
            return
        raise RefusedRequestError(404, "There is no such page.")

    def _to_login(self, request: Request) -> Response:
        if _wants_json(request):
            return JSONResponse({"error": "Log in, or send the token as Authorization: Bearer."}, 401)
        wanted = here(request) if request.method in ("GET", "HEAD") else "/"
        if request.headers.get("x-menzil-live"):
            return Response(status_code=401)
        return RedirectResponse(url(request, "/login", next=wanted), 303)

    async def refusal(self, request: Request, refused: RefusedRequestError) -> Response:
        """The page, or the twin of one, that says why not."""
        if _wants_json(request):
            return JSONResponse({"error": refused.sentence, "hint": refused.hint}, refused.status)
        visit = None
        if refused.status not in (400, 413):  # a wrong name is not told who is logged in
            try:
                visit = await self._desk.door.enter(request)
            except (LoginNeededError, RefusedRequestError):
                visit = None
        values = {"sentence": refused.sentence, "hint": refused.hint, "status": refused.status}
        response = self._desk.html(request, "refused.html", values, visit, refused.status)
        if refused.status == 429:
            response.headers["Retry-After"] = "60"
        return response


def _wants_json(request: Request) -> bool:
    return str(request.scope["path"]).endswith(".json")


def _routes(desk: Desk) -> list[Route]:
    entering, found = Entering(desk), list[Route]()
    found.append(Route("/healthz", entering.healthz))
    found.append(Route("/static/{name}", entering.static))
    if desk.options.metrics_token is not None or desk.options.metrics_open:
        found.append(Route("/metrics", Measuring(desk).metrics))
    found += Iceberg(desk.database, desk.door).routes("/iceberg")
    found.append(Route("/theme/{theme}", entering.theme))
    if desk.door.has_login:
        found.append(Route("/login", entering.login, methods=["GET", "POST"]))
        found.append(Route("/logout", entering.logout, methods=["POST"]))
    for page in all_pages():
        found.append(Route(page.json_path, twin_handler(desk, page)))
    for page in all_pages():
        found.append(Route(page.path, page_handler(desk, page)))
    if not desk.options.read_only:
        acting = Acting(desk)
        if desk.door.has_login:
            found.append(Route("/acts/{act}.json", Programs(desk).act, methods=["POST"]))
        found.append(Route("/acts/{act}", acting.form, methods=["GET"]))
        found.append(Route("/acts/{act}", acting.plan, methods=["POST"]))
        found.append(Route("/acts/{act}/do", acting.do, methods=["POST"]))
        found.append(Route("/acts/{act}/done", acting.done, methods=["GET"]))
    return found


__all__ = ["Console"]
