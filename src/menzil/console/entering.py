"""Login, logout, the theme, the files of the pages, and the answer to "are you there?"."""

from __future__ import annotations

import secrets
import time

import psycopg
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from menzil.console.desk import THEME_COOKIE, THEMES, Desk, url
from menzil.console.door import Visit
from menzil.console.guards import RefusedRequestError, demand_same_origin, read_form
from menzil.console.render import STATIC, asset
from menzil.model.errors import MenzilError
from menzil.ops import looking


class Entering:
    """The routes that work without a login."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def login(self, request: Request) -> Response:
        """The form, and what it sends."""
        if request.method != "POST":
            return self._desk.html(request, "login.html", {"next": request.query_params.get("next", "/")}, None)
        demand_same_origin(request)
        form = await read_form(request)
        wanted = form.get("next", "/")
        try:
            token = self._desk.door.try_token(request, form.get("token", "").strip())
        except RefusedRequestError as refused:
            values = {"next": wanted, "sentence": refused.sentence, "hint": refused.hint}
            response = self._desk.html(request, "login.html", values, None, refused.status)
            if refused.status == 429:
                response.headers["Retry-After"] = "60"
            return response
        response = RedirectResponse(url(request, _local(wanted)), 303)
        visit = Visit(token.access, self._desk.door.sessions.begin(token.mark), fresh=True)
        self._desk.keep(request, response, visit)
        return response

    async def logout(self, request: Request) -> Response:
        """End the session."""
        visit = await self._desk.door.enter(request)
        demand_same_origin(request)
        form = await read_form(request)
        if not secrets.compare_digest(form.get("csrf", "").encode(), self._desk.csrf(visit, "logout").encode()):
            raise RefusedRequestError(403, "This form belongs to another session.")
        response = RedirectResponse(url(request, "/login"), 303)
        self._desk.door.sessions.end(request, response, visit.session)
        return response

    async def theme(self, request: Request) -> Response:
        """Remember the theme in a cookie; "system" forgets it."""
        response = RedirectResponse(url(request, _local(request.query_params.get("next", "/"))), 303)
        chosen = request.path_params["theme"]
        if chosen in THEMES:
            response.set_cookie(THEME_COOKIE, chosen, max_age=31_536_000, path="/", samesite="strict", httponly=True)
        else:
            response.delete_cookie(THEME_COOKIE, path="/", samesite="strict", httponly=True)
        return response

    async def static(self, request: Request) -> Response:
        """A file of the pages. Its address holds a mark of what is in it, so a browser may keep it."""
        name = request.path_params["name"]
        found = asset(name)
        if found is None:
            raise RefusedRequestError(404, "There is no such file.")
        kept = "public, max-age=31536000, immutable" if request.query_params.get("v") else "no-store"
        return Response(found, media_type=STATIC[name], headers={"Cache-Control": kept})

    async def healthz(self, request: Request) -> Response:
        """200 when the database answers, 503 when it does not; nothing else is told."""
        del request

        def look() -> bool:
            try:
                self._desk.database.read(lambda run: run(looking.now()), time.monotonic() + 2)
            except (MenzilError, psycopg.Error):
                return False
            return True

        try:
            well = await self._desk.ask(("healthz",), look, 2.5, 0)
        except TimeoutError:
            well = False
        return Response(status_code=200 if well else 503)


def _local(path: str) -> str:
    """A path of this console; anything that could lead elsewhere is its first page."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if safe else "/"
