"""Tokens for the login `oauth2`: fetched by menzil's own HTTP client, so that the guard judges where they come from."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from menzil.deliver.broker.plan import Plan
from menzil.deliver.guard import Guard, Lookup, RefusedUrlError, ResolveError
from menzil.deliver.http.errors import RefusedError
from menzil.deliver.http.oauth import OAuth, TokenError
from menzil.deliver.http.tls import Contexts
from menzil.deliver.http.ways import Way, Ways
from menzil.deliver.kafka.cluster import Token
from menzil.deliver.protocol import Surroundings
from menzil.deliver.wire import Answer, Client, WireError


class NoTokenError(Exception):
    """There is no token; the text says why, and shows no secret."""


class Tokens:
    """The token servers of one worker. Belongs to one event loop."""

    def __init__(self, surroundings: Surroundings, lookup: Lookup) -> None:
        self._contexts = Contexts()
        self._guard = Guard.from_settings(surroundings.settings, lookup=lookup)
        self._client: Client | None = None

    def refresh(self, surroundings: Surroundings) -> None:
        """Take new settings."""
        self._guard = self._guard.refresh(surroundings.settings)

    async def close(self) -> None:
        """Drop all connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def getter(self, auth: Mapping[str, Any], plan: Plan) -> Token:
        """Return what librdkafka calls, in the thread of a producer, when it needs a token."""
        loop = asyncio.get_running_loop()

        def get(_: str) -> tuple[str, float]:
            work = self._get(auth, plan)
            try:
                coming = asyncio.run_coroutine_threadsafe(work, loop)
                try:
                    token, life = coming.result(plan.seconds + 1)
                except TimeoutError:
                    coming.cancel()
                    raise NoTokenError(f"no token within {plan.seconds:g} s") from None
            finally:
                # librdkafka may ask when the worker has ended: a producer waits seconds for its first token, and its
                # close does not wait so long. The loop then never begins this work.
                if loop.is_closed():
                    work.close()
            return token, time.time() + life

        return get

    async def _get(self, auth: Mapping[str, Any], plan: Plan) -> tuple[str, float]:
        if self._client is None:
            self._client = Client()
        client, guard = self._client, self._guard

        async def fetch(way: Way, head: bytes, body: bytes) -> Answer:
            addresses = await guard.resolve(way.target, plan.seconds)
            return await client.exchange(
                way.route,
                addresses,
                head,
                body,
                started=client.loop.time(),
                seconds=plan.seconds,
                connect_seconds=plan.connect_seconds,
            )

        try:
            oauth = OAuth(auth, Ways(guard, self._contexts).to(auth["token_url"], {}))
            return await oauth.token(fetch), oauth.seconds_left()
        except (RefusedUrlError, ResolveError) as error:
            raise NoTokenError(error.reason) from None
        except (RefusedError, TokenError, WireError) as error:
            raise NoTokenError(plan.hider.hide(str(error))) from None
