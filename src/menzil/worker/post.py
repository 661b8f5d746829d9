"""Delivers to endpoints: knows their configs as they are now, and hands each message to its protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import cast

import psycopg

from menzil.deliver.protocol import Batching, Endpoint, Protocol, Refused, Surroundings
from menzil.deliver.registry import Protocols, UnknownProtocolError
from menzil.model.errors import MenzilError
from menzil.model.message import Message
from menzil.model.outcome import Fail, Outcome
from menzil.model.secrets import SecretKeys, decrypt_config
from menzil.ops import working
from menzil.worker.link import Link
from menzil.worker.log import Log
from menzil.worker.outcomes import fault


class Post:
    """The endpoints of one worker."""

    def __init__(
        self,
        lease: Link,
        worker: str,
        settings: Mapping[str, str],
        log: Log,
        keys: SecretKeys,
        read: Callable[[], Awaitable[Mapping[str, str]]],
    ) -> None:
        self._lease = lease
        self._read = read  # the settings, anew
        self._read_at = monotonic()
        self._reading = asyncio.Lock()
        self._worker = worker
        self._log = log
        self._keys = keys
        self._known: dict[str, Endpoint] = {}
        self._takes_many: dict[str, bool] = {}  # by protocol: whether it delivers many messages at once
        self._trouble: dict[str, str] = {}  # why an endpoint cannot be used
        self.protocols = Protocols(Surroundings(settings, worker))

    def prepare(self, names: Sequence[str]) -> None:
        """Import these protocols now: it takes a tenth of a second, and the first messages would wait for it."""
        for name in names:
            with suppress(UnknownProtocolError):  # the messages of its endpoints say so
                self.protocols.get(name)

    async def learn(self, names: set[str]) -> None:
        """Ask for the configs of these endpoints; only those that changed travel."""
        asked = sorted(names)
        known = [self._known.get(name) for name in asked]
        op = working.delivery_configs(asked, [None if one is None else one.updated_at for one in known])
        for id, name, protocol, config, updated_at in await self._lease.run(op):
            self._known.pop(name, None)
            self._trouble.pop(name, None)
            if id is None or updated_at is None:
                continue
            try:
                self._known[name] = Endpoint(id, name, protocol, decrypt_config(config, name, self._keys), updated_at)
            except MenzilError as error:
                self._trouble[name] = error.message
                self._log.error("endpoint_unusable", endpoint=name, error=error.message)

    def knows(self, name: str) -> bool:
        """Whether there is such an endpoint, usable or not."""
        return name in self._known or name in self._trouble

    async def deliver(self, message: Message) -> Outcome:
        """Deliver one message to its endpoint."""
        way = self._way(message.channel)
        if isinstance(way, Fail):
            return way
        protocol, endpoint = way
        began = monotonic()
        try:
            outcome = await protocol.deliver(message, endpoint)
            if isinstance(outcome, Refused) and await self._has_read_since(began):
                outcome = await protocol.deliver(message, endpoint)
        except Exception as error:  # it never should
            return fault(error)
        return outcome

    def size(self, name: str) -> int:
        """How many messages to this endpoint are delivered together; 1 where its protocol takes them one by one."""
        way = self._way(name)
        if isinstance(way, Fail):
            return 1
        protocol, endpoint = way
        takes_many = self._takes_many.get(endpoint.protocol)
        if takes_many is None:  # a question that takes long, and has one answer for each protocol
            takes_many = self._takes_many[endpoint.protocol] = isinstance(protocol, Batching)
        return max(1, cast(Batching, protocol).batch) if takes_many else 1

    async def deliver_many(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """Deliver messages to their one endpoint, and return an outcome for each."""
        way = self._way(messages[0].channel)
        if isinstance(way, Fail):
            return [way] * len(messages)
        protocol, endpoint = way
        if not isinstance(protocol, Batching):  # the endpoint was dropped and made anew while these waited
            return [await self.deliver(message) for message in messages]
        began = monotonic()
        try:
            found = list(await protocol.deliver_many(messages, endpoint))
            refused = [place for place, outcome in enumerate(found) if isinstance(outcome, Refused)]
            if refused and len(found) == len(messages) and await self._has_read_since(began):
                again = await protocol.deliver_many([messages[place] for place in refused], endpoint)
                for place, outcome in zip(refused, again, strict=True):
                    found[place] = outcome
        except Exception as error:  # it never should
            return [fault(error)] * len(messages)
        return found

    def _way(self, name: str) -> tuple[Protocol, Endpoint] | Fail:
        """Return the endpoint and its protocol as they are now, or why there is no way."""
        endpoint = self._known.get(name)
        if endpoint is None:
            return Fail(self._trouble.get(name) or f"There is no endpoint {name!r} any more.")
        try:
            return self.protocols.get(endpoint.protocol), endpoint
        except UnknownProtocolError as error:
            return Fail(str(error))

    async def _has_read_since(self, began: float) -> bool:
        """Read the settings again, unless that was done since then. A refusal is for good, so it needs fresh ones."""
        async with self._reading:
            if self._read_at > began:
                return True
            asked = monotonic()
            try:
                self.refresh(await self._read())
            except (MenzilError, psycopg.Error) as error:
                self._log.warning("settings_not_read", error=error)
                return False
            self._read_at = asked
            return True

    def refresh(self, settings: Mapping[str, str]) -> None:
        """Take new settings."""
        self.protocols.refresh(Surroundings(settings, self._worker))
