"""Sessions: a signed cookie, 12 hours at most, 2 hours without a page that a person opened.

The cookie holds no right: the role is that of the token on the list, or of what `authorize` says, at each request.
Where the console has no login of its own, the cookie only names the browser, so that forms can be bound to it.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response

from menzil.console.signing import Signer

#: Seconds a session lasts, with and without use, and how old its mark of use may get before it is written anew.
LIFE, IDLE, FRESH = 12 * 3600, 2 * 3600, 300

#: Sessions that ended before their time and must not come back; the oldest are forgotten, they have run out by then.
MOST_ENDED = 10_000


@dataclass(frozen=True, slots=True)
class Session:
    """`mark` is what the session remembers of its token, or "" where there was no login."""

    id: str
    mark: str
    began: float
    seen: float


class Sessions:
    """Reads and writes the cookie."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._ended: OrderedDict[str, None] = OrderedDict()

    def read(self, request: Request) -> Session | None:
        """The session of this request, if it has one that has not run out."""
        value = self._signer.open("session", request.cookies.get(cookie_name(request), ""))
        try:
            session = Session(**value) if isinstance(value, dict) else None
        except TypeError:  # sealed by another version
            return None
        if session is None or session.id in self._ended:
            return None
        now = time.time()
        alive = now - session.began < LIFE and now - session.seen < IDLE
        return session if alive else None

    def begin(self, mark: str = "") -> Session:
        """A new session."""
        return Session(secrets.token_urlsafe(18), mark, time.time(), time.time())

    def keep(self, request: Request, response: Response, session: Session, *, fresh: bool) -> None:
        """Write the cookie where it is new or was not written for a while."""
        if fresh or time.time() - session.seen > FRESH:
            sealed = self._signer.seal("session", _plain(replace(session, seen=time.time())))
            response.set_cookie(
                cookie_name(request), sealed, max_age=LIFE, path="/", secure=_is_secure(request), httponly=True,
                samesite="strict",
            )  # fmt: skip

    def end(self, request: Request, response: Response, session: Session) -> None:
        """Forget the session, here and in the browser."""
        self._ended[session.id] = None
        while len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)
        response.delete_cookie(
            cookie_name(request), path="/", secure=_is_secure(request), httponly=True, samesite="strict"
        )


def _plain(session: Session) -> dict[str, object]:
    return {"id": session.id, "mark": session.mark, "began": round(session.began), "seen": round(session.seen)}


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https"


def cookie_name(request: Request) -> str:
    """`__Host-` needs HTTPS. Without it the port is part of the name: browsers share cookies between ports."""
    if _is_secure(request):
        return "__Host-menzil"
    return f"menzil-{request.url.port or 80}"
