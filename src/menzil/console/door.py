"""The door: who is it, and may they come in? Closed unless a token, `authorize` or this very machine opens it."""

from __future__ import annotations

import getpass
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from starlette.requests import Request

from menzil.console import tokens
from menzil.console.access import Access
from menzil.console.failures import Failures
from menzil.console.guards import RefusedRequestError
from menzil.console.sessions import Session, Sessions
from menzil.console.signing import Signer
from menzil.console.tokens import Token

Authorize = Callable[[Request], "Access | Awaitable[Access | None] | None"]


class LoginNeededError(Exception):
    """No user is logged in, and one could be."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Who it is, and the session that forms are bound to; `fresh` when its cookie is not written yet."""

    access: Access
    session: Session
    fresh: bool


def local_access() -> Access:
    """The access of a console without tokens on loopback: a person who reaches it is the user who started it."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        name = "local"
    return Access.admin(name)


class Door:
    """One of three keepers: a list of tokens, a function of the application, or this machine alone."""

    def __init__(
        self, signer: Signer, *, tokens: Sequence[Token], authorize: Authorize | None, local: Access | None
    ) -> None:
        self.sessions = Sessions(signer)
        self.failures = Failures()
        self._tokens = tuple(tokens)
        self._authorize = authorize
        self._local = local

    @property
    def has_login(self) -> bool:
        """Whether there is a page to log in."""
        return bool(self._tokens) and self._authorize is None

    async def enter(self, request: Request) -> Visit:
        """Let a person in, or raise LoginNeededError or RefusedRequestError."""
        session = self.sessions.read(request)
        if self._authorize is not None:
            found = self._authorize(request)
            access = await found if inspect.isawaitable(found) else found
            if not isinstance(access, Access):
                raise RefusedRequestError(403, "You may not use this console.")
            return self._visit(access, session)
        if self._tokens:
            return self._with_token(request, session)
        if self._local is not None:
            return self._visit(self._local, session)
        hint = "Give Console(…) tokens, or authorize=, which says who may come in."
        raise RefusedRequestError(403, "This console has no way to log in.", hint)

    def _with_token(self, request: Request, session: Session | None) -> Visit:
        if session is not None:
            for token in self._tokens:
                if session.mark == token.mark:
                    return Visit(token.access, session, fresh=False)
        if request.method in ("GET", "HEAD") and (found := self._bearer(request)) is not None:
            # Without a cookie: a program that reads the twins keeps no session, and sends no forms.
            return Visit(found.access, self.sessions.begin(), fresh=False)
        raise LoginNeededError

    def enter_program(self, request: Request) -> Access:
        """Let a program in that acts. Its token is in the request itself, so no other site can send it by a cookie."""
        found = self._bearer(request)
        if found is None:
            raise LoginNeededError
        return found.access

    def _bearer(self, request: Request) -> Token | None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        return self.try_token(request, given.strip()) if scheme.lower() == "bearer" else None

    def try_token(self, request: Request, given: str) -> Token:
        """The token that was given, or a refusal; five failures a minute and an address has to wait."""
        address = request.client.host if request.client else ""
        wait = self.failures.wait(address)
        if wait:
            raise RefusedRequestError(429, "Too many failed logins.", f"Try again in {wait:.0f} seconds.")
        found = tokens.find(self._tokens, given)
        if found is None:
            self.failures.add(address)
            raise RefusedRequestError(401, "This token is not on the list.")
        return found

    def _visit(self, access: Access, session: Session | None) -> Visit:
        if session is not None and session.mark == access.name:
            return Visit(access, session, fresh=False)
        return Visit(access, self.sessions.begin(access.name), fresh=True)
