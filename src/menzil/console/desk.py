"""What all handlers share: the database, the door, and how a page is put into its frame."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from menzil.console.access import Access, Payloads
from menzil.console.acts import all_acts
from menzil.console.database import Database
from menzil.console.door import Door, Visit
from menzil.console.nav import places
from menzil.console.render import render
from menzil.console.rules import Rules, read_rules
from menzil.console.shared import OPENED, Shared, is_slow
from menzil.console.sheets import Sheets
from menzil.console.signing import Signer
from menzil.console.texts import slug
from menzil.model.redact import Redactor

T = TypeVar("T")

THEMES = ("light", "dark")
THEME_COOKIE = "menzil-theme"

#: Seconds for which the settings `redact` and `console_payloads` are believed.
RULES_FOR = 10.0
#: Seconds of its time that a page waits for them.
RULES_WAIT = 1.0
#: Seconds that a page waits for an answer anew where the one before is known.
PATIENCE = 1.0


@dataclass(frozen=True)
class Options:
    """How this console was set up."""

    read_only: bool = False
    payloads: Payloads | None = None
    metrics_token: str | None = None
    metrics_open: bool = False
    trace_url: str | None = None
    lake: str | None = None


class Desk:
    """One console."""

    def __init__(
        self, database: Database, door: Door, signer: Signer, options: Options, paths: set[str], name: str = ""
    ) -> None:
        """`name` is that of the database, where the console shows several."""
        self.database, self.door, self.signer, self.options = database, door, signer, options
        self.name = name
        self.databases: list[tuple[str, str]] = []  # where there are several: their names and paths
        self.shared, self.sheets = Shared(database.budget), Sheets()
        self.nav = places(paths)
        self._rules: tuple[float, Rules] | None = None

    async def ask(
        self,
        key: tuple[Any, ...],
        work: Callable[[], T],
        timeout: float,
        most_age: float = OPENED,
        *,
        soon: bool = False,
        stand_in: bool = False,
    ) -> T:
        """An answer that all share, from a thread of the readers; TimeoutError when it takes longer.

        While a new answer takes long, the one before it, if that is no older than `most_age` seconds; with 0, never.
        With `stand_in`, the last good one of two minutes in the place of one that does not come for want of time.
        """
        found = self.shared.get(key, lambda: self.database.submit(work), most_age, soon=soon)
        last: Future[T] | None = found.last if stand_in else None

        def settled(answer: T) -> T:
            return last.result() if last is not None and is_slow(answer) else answer

        if found.future.done():
            return settled(found.future.result())
        patience = timeout if found.known is None else min(timeout, PATIENCE)
        try:
            return settled(await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(found.future)), patience))
        except TimeoutError:
            known: Future[T] | None = found.known or last
            if known is None:
                raise
            return known.result()

    def forget(self) -> None:
        """Let every page be asked for anew: an operator has just changed something."""
        self.database.common.forget()
        self.shared.forget()

    async def act(self, work: Callable[[], T]) -> T:
        """An answer from a thread of the actors; the person may go, the act goes on."""
        return await asyncio.shield(asyncio.wrap_future(self.database.submit_act(work)))

    async def thread(self, work: Callable[[], T]) -> T:
        """An answer from a thread of its own, which asks the database by itself."""
        return await asyncio.shield(asyncio.to_thread(work))

    async def rules(self, deadline: float) -> Rules:
        """What of payloads is shown; where the database does not say, as little as it could say."""
        if self._rules is None or time.monotonic() - self._rules[0] > RULES_FOR:
            left = max(min(deadline - time.monotonic(), RULES_WAIT), 0.01)
            try:
                found = await self.ask(("rules",), lambda: read_rules(self.database, self.options.payloads), left, 0)
            except TimeoutError:
                found = None
            if found is None:
                return self._rules[1] if self._rules else Rules("hide", Redactor([]))
            self._rules = (time.monotonic(), found)
        return self._rules[1]

    def acts(self, access: Access) -> frozenset[str]:
        """The acts that this person may do; none on a console that only reads."""
        if self.options.read_only:
            return frozenset()
        return frozenset(name for name, act in all_acts().items() if access.may(act.role))

    def csrf(self, visit: Visit, what: str) -> str:
        """The token of a form: bound to the session, the person and what the form does."""
        return self.signer.mac("form", *filter(None, [self.name]), visit.session.id, visit.access.name, what)

    def html(
        self, request: Request, template: str, values: Mapping[str, Any], visit: Visit | None, status: int = 200
    ) -> Response:
        """A page in its frame, and the cookie of its session."""
        frame = self.frame(request, visit)
        response = HTMLResponse(render(template, frame | dict(values)), status)
        self.keep(request, response, visit)
        return response

    def keep(self, request: Request, response: Response, visit: Visit | None) -> None:
        """Write the cookie of the session where that is due; a page that refreshes itself is no sign of life."""
        if visit is not None and (visit.fresh or not is_live(request)):
            self.door.sessions.keep(request, response, visit.session, fresh=visit.fresh)

    def _switch(self, request: Request) -> list[tuple[str, str]]:
        """Names of all databases, and where the same console shows them; nothing where there is one."""
        own = next((path for name, path in self.databases if name == self.name), "")
        outer = root_of(request.scope).removesuffix(own)
        return [(name, quote(outer + path, safe="/:@+~%") + "/") for name, path in self.databases]

    def impersonal(self, root: str, acts: frozenset[str]) -> dict[str, Any]:
        """What a sheet may use: all who may do these acts share it. `root` is where the console is mounted."""
        return {
            "url": lambda path, **query: below(root, path, **query),
            "layout": "sheet.html",
            "acts": acts,
            "read_only": self.options.read_only,
            "slug": slug,
            "trace_url": self.options.trace_url,
        }

    def frame(self, request: Request, visit: Visit | None) -> dict[str, Any]:
        """What every other template may use: the frame of a page, a form, a refusal."""
        access = visit.access if visit else None
        acts = self.acts(access) if access else frozenset[str]()
        return self.impersonal(root_of(request.scope), acts) | {
            "here": here(request),
            "database": self.name,
            "databases": self._switch(request),
            "layout": "page.html",
            "nav": self.nav if visit else [],
            "access": access,
            "has_login": self.door.has_login,
            "logout_token": self.csrf(visit, "logout") if visit and self.door.has_login else "",
            "theme": theme(request),
            "live": 0,
            "as_of": None,
            "ms": None,
            "age": 0.0,
            "json_path": None,
            "nav_path": "",
            "main": "",
        }


def url(request: Request, path: str, **query: Any) -> str:
    """A link below the prefix that the console is mounted at; words that are None or empty are left out."""
    return below(root_of(request.scope), path, **query)


def below(root: str, path: str, **query: Any) -> str:
    """The same where only the prefix is known."""
    words = urlencode({name: value for name, value in query.items() if value not in (None, "")})
    return quote(root, safe="/:@+~") + path + (f"?{words}" if words else "")


def root_of(scope: Scope) -> str:
    """The path of the place where the console is mounted, without a slash at its end."""
    return str(scope.get("root_path", "")).rstrip("/")


def route_path(scope: Scope) -> str:
    """The path below the place where the console is mounted."""
    root, path = root_of(scope), str(scope["path"])
    return path[len(root) :] if root and (path == root or path.startswith(f"{root}/")) else path


def here(request: Request) -> str:
    """The path and the query of this page, below the prefix."""
    path = quote(route_path(request.scope), safe="/:@+~") or "/"
    query = request.scope.get("query_string", b"").decode("latin-1")
    return f"{path}?{query}" if query else path


def theme(request: Request) -> str:
    """The theme that the person chose, or "" for that of the system."""
    chosen = request.cookies.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else ""


def is_live(request: Request) -> bool:
    """Whether an open page asks for itself again."""
    return request.headers.get("x-menzil-live") == "1"
