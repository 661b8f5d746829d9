"""OAuth 2.0 client credentials: a token fetched once for all who wait for it, and used until shortly before it ends."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote_plus, urlencode

from menzil.deliver.http.excerpt import Hider, response
from menzil.deliver.http.headers import rendered
from menzil.deliver.http.verdict import failure
from menzil.deliver.http.ways import Way
from menzil.deliver.wire import Answer
from menzil.model.outcome import Fail

Fetch = Callable[[Way, bytes, bytes], Awaitable[Answer]]

_TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")
_DEFAULT_LIFE = 300.0  # of a token that does not say how long it lives
_WHO = "No token: the token server answered "


class TokenError(Exception):
    """There is no token. `outcome` says what that means for the message."""

    def __init__(self, outcome: Fail) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class OAuth:
    """The token of one endpoint."""

    def __init__(self, auth: Mapping[str, Any], way: Way) -> None:
        self.way = way
        self._head, self._body = _request(auth, way)
        basic = b64encode(f"{quote_plus(auth['client_id'])}:{quote_plus(auth['client_secret'])}".encode()).decode()
        self.secrets = [auth["client_secret"], basic]  # the last tokens come to it
        self._token: str | None = None
        self._until = 0.0
        self._fetching: asyncio.Task[str] | None = None

    async def token(self, fetch: Fetch) -> str:
        """Return a token that is good for a while, or raise TokenError or what `fetch` raises."""
        loop = asyncio.get_running_loop()
        if self._token is not None and loop.time() < self._until:
            return self._token
        if self._fetching is None:
            self._fetching = loop.create_task(self._fetch(fetch))
            self._fetching.add_done_callback(self._fetched)
        # Shielded: others wait for it too, and the delivery that asked first may be stopped.
        return await asyncio.shield(self._fetching)

    def seconds_left(self) -> float:
        """How long the last token is good for."""
        return self._until - asyncio.get_running_loop().time()

    def spent(self, token: str) -> None:
        """Forget a token that was not accepted, unless another delivery has already got a new one."""
        if self._token == token:
            self._token = None

    def _fetched(self, task: asyncio.Task[str]) -> None:
        self._fetching = None
        if not task.cancelled():
            task.exception()  # looked at, because all callers that asked may have gone

    async def _fetch(self, fetch: Fetch) -> str:
        loop = asyncio.get_running_loop()
        asked = loop.time()
        answer = await fetch(self.way, self._head, self._body)
        if not 200 <= answer.status < 300:
            said = response(answer, Hider(self.secrets), round((loop.time() - asked) * 1000), None)
            raise TokenError(failure(answer, said, _WHO))
        token, life = _read(answer)
        self._token = token
        self.secrets = [*self.secrets[:2], token, *self.secrets[2:3]]
        self._until = asked + life - min(60.0, life / 10)
        return token


def _read(answer: Answer) -> tuple[str, float]:
    try:
        said = json.loads(answer.body)
        token, life = said["access_token"], said.get("expires_in")
        kind = said.get("token_type", "bearer")
        seconds = _DEFAULT_LIFE if life is None else min(max(float(life), 0.0), 86_400.0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise TokenError(Fail(_WHO + "with something else than a token")) from None
    if not isinstance(token, str) or not _TOKEN.fullmatch(token) or str(kind).lower() != "bearer":
        raise TokenError(Fail(_WHO + "with a token that is no bearer token"))
    return token, seconds


def _request(auth: Mapping[str, Any], way: Way) -> tuple[bytes, bytes]:
    form = {"grant_type": "client_credentials"}
    form |= {key: auth[key] for key in ("scope", "audience") if auth.get(key)}
    headers = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded"}
    if auth.get("client_auth") == "body":
        form |= {"client_id": auth["client_id"], "client_secret": auth["client_secret"]}
    else:
        pair = f"{quote_plus(auth['client_id'])}:{quote_plus(auth['client_secret'])}"
        headers["authorization"] = "Basic " + b64encode(pair.encode()).decode()
    if way.proxy_authorization:
        headers["proxy-authorization"] = way.proxy_authorization
    body = urlencode(form).encode()
    line = f"POST {way.prefix}{way.target.path_and_query} HTTP/1.1\r\nhost: {way.target.authority}\r\n"
    return f"{line}{rendered(headers)}content-length: {len(body)}\r\n\r\n".encode(), body
