"""The protocol `http`: one request per message and attempt."""

from __future__ import annotations

import asyncio
from datetime import datetime

from menzil.deliver.guard import Guard, Lookup, RefusedUrlError, ResolveError
from menzil.deliver.guard.resolve import system_lookup
from menzil.deliver.http.errors import RefusedError
from menzil.deliver.http.excerpt import Hider
from menzil.deliver.http.headers import is_secret
from menzil.deliver.http.oauth import OAuth, TokenError
from menzil.deliver.http.plan import Plan, make_plan
from menzil.deliver.http.request import compose
from menzil.deliver.http.tls import Contexts
from menzil.deliver.http.verdict import no_answer, verdict
from menzil.deliver.http.ways import Way, Ways
from menzil.deliver.protocol import Endpoint, Refused, Surroundings
from menzil.deliver.wire import Answer, Client, WireError
from menzil.deliver.wire.errors import late
from menzil.model.message import Message
from menzil.model.outcome import Complete, Fail, Outcome
from menzil.telemetry.tracing import PROCESSING

_ROOM = 4096
_COMPLETE = Complete()


class Http:
    """Delivers to HTTP endpoints."""

    def __init__(self, surroundings: Surroundings, *, lookup: Lookup = system_lookup) -> None:
        self._contexts = Contexts()
        self._plans: dict[int, tuple[datetime, Plan | str]] = {}  # by endpoint; a text says why there is no plan
        self._client: Client | None = None
        self._take(surroundings, Guard.from_settings(surroundings.settings, lookup=lookup))

    def _take(self, surroundings: Surroundings, guard: Guard) -> None:
        settings = surroundings.settings
        self._capture = settings.get("capture_response") == "true"
        self._open_to_all = settings.get("http_allow_internal_urls") == "true"
        self._guard = guard
        self._ways = Ways(guard, self._contexts)

    def refresh(self, surroundings: Surroundings) -> None:
        """Take new settings."""
        guard = self._guard.refresh(surroundings.settings)
        if guard is self._guard:
            self._capture = surroundings.settings.get("capture_response") == "true"
            return
        self._plans.clear()
        self._take(surroundings, guard)

    async def close(self) -> None:
        """Drop all connections."""
        self._plans.clear()
        if self._client is not None:
            self._client.close()
            self._client = None
            await asyncio.sleep(0)  # transports close in the next turn of the loop

    def connections(self) -> tuple[int, int]:
        """Return how many connections are at work, and how many are kept for later."""
        return self._client.pool.counts() if self._client else (0, 0)

    async def deliver(self, message: Message, endpoint: Endpoint) -> Outcome:
        """Deliver once, within timeout_seconds of the endpoint."""
        client = self._client
        if client is None:
            client = self._client = Client()
        started = client.loop.time()
        known = self._plans.get(endpoint.id)
        plan = known[1] if known is not None and known[0] == endpoint.updated_at else self._plan(endpoint)
        if isinstance(plan, str):
            return Refused(plan, retry=False)
        try:
            if plan.oauth is None:
                answer = await self._request(client, plan, message, None, started)
            else:
                answer = await self._with_token(client, plan, plan.oauth, message, started)
        except RefusedError as error:
            return Fail(str(error), retry=False)
        except RefusedUrlError as error:
            return Refused(error.reason, retry=False)
        except ResolveError as error:
            return Fail(error.reason)
        except TokenError as error:
            return error.outcome
        except WireError as error:
            spent = round((client.loop.time() - started) * 1000)
            return no_answer(error, _hider(message, plan), spent, _correlation(message))
        capture = self._capture if plan.capture is None else plan.capture
        if not capture and plan.successes is None and 200 <= answer.status < 300:
            return _COMPLETE
        return verdict(
            answer,
            successes=plan.successes,
            hider=_hider(message, plan),
            milliseconds=round((client.loop.time() - started) * 1000),
            correlation_id=_correlation(message),
            capture=capture,
        )

    async def _request(self, client: Client, plan: Plan, message: Message, token: str | None, started: float) -> Answer:
        """Send the message, in a span of its own where deliveries are traced."""
        process = PROCESSING.get()
        if process is None:
            head, body = compose(plan, message, token)
            return await self._send(client, plan, plan.way, head, body, started)
        target = plan.target
        with process.core.request(plan.method, target.scheme, (target.host, target.port), message.attempt) as request:
            head, body = compose(plan, message, token, request.headers)
            answer = await self._send(client, plan, plan.way, head, body, started)
            request.answered(answer.status)
            return answer

    async def _send(self, client: Client, plan: Plan, way: Way, head: bytes, body: bytes, started: float) -> Answer:
        left = started + plan.seconds - client.loop.time()
        if left <= 0:
            raise late(plan.seconds, "before the request")
        if way.proxy is None:
            addresses = await self._guard.resolve(way.target, left)
        else:
            # The proxy resolves the name once more, and may see another address than we do: what it may reach is its
            # own affair. We keep it from being asked for what is not allowed as far as we can see.
            if not self._open_to_all:
                await self._guard.resolve(way.target, left)
            addresses = await self._guard.resolve(way.proxy, left)
        return await client.exchange(
            way.route,
            addresses,
            head,
            body,
            started=started,
            seconds=plan.seconds,
            connect_seconds=plan.connect_seconds,
        )

    async def _with_token(self, client: Client, plan: Plan, oauth: OAuth, message: Message, started: float) -> Answer:
        """Send with a token; when it is not accepted, once more with a new one."""

        async def fetch(way: Way, head: bytes, body: bytes) -> Answer:
            return await self._send(client, plan, way, head, body, client.loop.time())

        fresh = False
        while True:
            try:
                async with asyncio.timeout_at(started + plan.seconds):
                    token = await oauth.token(fetch)
            except TimeoutError:
                raise late(plan.seconds, "getting a token") from None
            answer = await self._request(client, plan, message, token, started)
            if answer.status != 401 or fresh or (plan.successes and 401 in plan.successes):
                return answer
            oauth.spent(token)
            fresh = True

    def _plan(self, endpoint: Endpoint) -> Plan | str:
        if len(self._plans) >= _ROOM:
            self._plans.clear()
        plan: Plan | str
        try:
            plan = make_plan(endpoint.config, self._ways)
        except RefusedUrlError as error:
            plan = error.reason
        except RefusedError as error:
            plan = str(error)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            # Its text may hold a piece of the config.
            plan = f"The config of the endpoint cannot be read ({type(error).__name__})."
        self._plans[endpoint.id] = (endpoint.updated_at, plan)
        return plan


def _correlation(message: Message) -> str | None:
    return str(message.correlation_id) if message.correlation_id else None


def _hider(message: Message, plan: Plan) -> Hider:
    """Return what hides the secrets of the endpoint, and those that the message brought or that were fetched for it."""
    more = [value for name, value in (message.headers or {}).items() if is_secret(name)]
    if plan.oauth:
        more += plan.oauth.secrets
    return Hider([*plan.secrets, *more]) if more else plan.hider
