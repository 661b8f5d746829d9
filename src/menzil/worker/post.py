"""Delivers to endpoints: knows their configs as they are now, and hands each message to its protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic

import psycopg

from menzil.deliver.protocol import Endpoint, Refused, Surroundings
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
        self._trouble: dict[str, str] = {}  # why an endpoint cannot be used
        self.protocols = Protocols(Surroundings(settings, worker))

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
        """Whether there is such an endpoint, be it usable or not."""
        return name in self._known or name in self._trouble

    async def deliver(self, message: Message) -> Outcome:
        """Deliver one message to its endpoint."""
        endpoint = self._known.get(message.channel)
        if endpoint is None:
            return Fail(self._trouble.get(message.channel) or f"There is no endpoint {message.channel!r} any more.")
        try:
            protocol = self.protocols.get(endpoint.protocol)
        except UnknownProtocolError as error:
            return Fail(str(error))
        began = monotonic()
        try:
            outcome = await protocol.deliver(message, endpoint)
            if isinstance(outcome, Refused) and await self._has_read_since(began):
                outcome = await protocol.deliver(message, endpoint)
        except Exception as error:  # it never should
            return fault(error)
        return outcome

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
