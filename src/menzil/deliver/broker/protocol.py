"""Delivers batches to a broker: what is the same for all of them, from the config to the outcomes."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from menzil.deliver.broker.batch import COMPLETE, Batch
from menzil.deliver.broker.dial import Make, dial
from menzil.deliver.broker.errors import EndpointError, bad_endpoint, unknown
from menzil.deliver.broker.kept import Kept
from menzil.deliver.broker.plan import Plan, make_plan
from menzil.deliver.broker.session import Session
from menzil.deliver.guard import Guard, Lookup, RefusedUrlError, Target
from menzil.deliver.guard.resolve import system_lookup
from menzil.deliver.http.errors import RefusedError
from menzil.deliver.http.excerpt import SHORT, line, safe
from menzil.deliver.http.tls import Contexts
from menzil.deliver.protocol import Endpoint, Refused, Surroundings
from menzil.model.message import Message
from menzil.model.outcome import Complete, Fail, Outcome

_ROOM = 4096


class Broker(ABC):
    """One kind of broker. Belongs to one event loop."""

    batch = 500
    session: Make
    late_tls = False  # whether the TLS handshake follows a greeting in plain text

    def __init__(self, surroundings: Surroundings, *, lookup: Lookup = system_lookup) -> None:
        self._contexts = Contexts(alpn=())
        self._plans: dict[int, tuple[datetime, Plan | Fail]] = {}
        self._kept = Kept()
        self._worker = surroundings.worker
        self._capture = surroundings.settings.get("capture_response") == "true"
        self._guard = Guard.for_brokers(surroundings.settings, lookup=lookup)

    @abstractmethod
    def targets(self, config: Mapping[str, Any]) -> tuple[Target, ...]:
        """Return the servers of a config. Raises RefusedUrlError."""

    def refresh(self, surroundings: Surroundings) -> None:
        """Take new settings."""
        self._capture = surroundings.settings.get("capture_response") == "true"
        guard = self._guard.refresh_for_brokers(surroundings.settings)
        if guard is not self._guard:
            # Connections to addresses that are allowed no longer must not be used again.
            self._guard = guard
            self._kept.close()
            self._kept = Kept()

    async def close(self) -> None:
        """Drop all connections."""
        self._plans.clear()
        self._kept.close()
        await asyncio.sleep(0)  # transports close in the next turn of the loop

    @property
    def kept(self) -> int:
        """How many connections are kept for later."""
        return self._kept.count

    async def deliver(self, message: Message, endpoint: Endpoint) -> Outcome:
        """Deliver one message."""
        return (await self.deliver_many([message], endpoint))[0]

    async def deliver_many(self, messages: Sequence[Message], endpoint: Endpoint) -> Sequence[Outcome]:
        """Deliver a batch, within timeout_seconds of the endpoint."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        plan = self._plan(endpoint)
        if isinstance(plan, Fail):
            return [plan] * len(messages)
        found = await self.carry(messages, endpoint, plan, started + plan.seconds)
        milliseconds = round((loop.time() - started) * 1000)
        capture = self.captures(plan)
        if not capture and all(type(outcome) is Complete for outcome in found):
            return [COMPLETE] * len(found)
        return [
            _finished(outcome, message, plan, milliseconds, capture)
            for outcome, message in zip(found, messages, strict=True)
        ]

    def captures(self, plan: Plan) -> bool:
        """Whether it is kept where messages were written."""
        return self._capture if plan.capture is None else plan.capture

    async def carry(
        self, messages: Sequence[Message], endpoint: Endpoint, plan: Plan, deadline: float
    ) -> Sequence[Outcome]:
        """Deliver a batch over one connection, and return what became of each message."""
        key = (endpoint.id, endpoint.updated_at)
        kept = self._kept  # refresh() replaces it, and what it closed takes no connection back
        try:
            session = await self.ready(endpoint, plan, kept, deadline)
        except RefusedUrlError as error:
            return [Refused(error.reason, response={"class": "endpoint"})] * len(messages)
        except EndpointError as error:
            return [bad_endpoint(plan.hider.hide(str(error)))] * len(messages)
        found = await self._publish(session, plan, messages, deadline)
        kept.keep(key, session)
        return found

    async def ready(self, endpoint: Endpoint, plan: Plan, kept: Kept, deadline: float) -> Session:
        """Return a connection for one batch, a kept one if there is one. Raises EndpointError and RefusedUrlError."""
        found = kept.take((endpoint.id, endpoint.updated_at))
        return found or await dial(plan, self._guard, self.session, deadline, late_tls=self.late_tls)

    async def _publish(
        self, session: Session, plan: Plan, messages: Sequence[Message], deadline: float
    ) -> Sequence[Outcome]:
        batch = Batch(len(messages), details=self.captures(plan))
        try:
            async with asyncio.timeout_at(deadline):
                await session.publish(messages, batch, deadline - asyncio.get_running_loop().time())
        except TimeoutError:
            session.abort()
            return batch.closed(f"No acknowledgement from {session.peer} within {plan.seconds:g} s")
        except BaseException:
            session.abort()
            raise
        finally:
            session.over()
        error = batch.error
        if error is None:
            return batch.closed("")
        return batch.closed(plan.hider.hide(str(error)), bad_endpoint if isinstance(error, EndpointError) else unknown)

    def _plan(self, endpoint: Endpoint) -> Plan | Fail:
        known = self._plans.get(endpoint.id)
        if known is not None and known[0] == endpoint.updated_at:
            return known[1]
        if known is not None:
            self._kept.forget(endpoint.id)
        if len(self._plans) >= _ROOM:
            self._plans.clear()
        plan: Plan | Fail
        try:
            plan = make_plan(endpoint.config, self.targets(endpoint.config), self._contexts, self._worker)
        except (RefusedUrlError, RefusedError) as error:
            plan = bad_endpoint(str(error))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            # Its text may hold a piece of the config.
            plan = bad_endpoint(f"The config of the endpoint cannot be read ({type(error).__name__}).")
        self._plans[endpoint.id] = (endpoint.updated_at, plan)
        return plan


def _finished(outcome: Outcome, message: Message, plan: Plan, milliseconds: int, capture: bool) -> Outcome:
    """Return an outcome as it is kept: with the time it took, or without a response where none is wanted.

    What a broker says about a message may repeat the message or a password, and may be as long as it likes.
    """
    if isinstance(outcome, Fail):
        reason = outcome.reason.partition(", with args beginning with")[0]
        return replace(outcome, reason=line(safe(reason, plan.hider, 4 * SHORT)))
    if isinstance(outcome, Complete):
        if not capture:
            return COMPLETE
        said = {**(outcome.response or {}), "duration_ms": milliseconds}
        if message.correlation_id:
            said["correlation_id"] = str(message.correlation_id)
        return Complete(said)
    return outcome
