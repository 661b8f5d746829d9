"""The protocol `mqtt`: a message is delivered when the server has acknowledged it as its QoS demands."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any

from menzil.deliver.broker.dial import dial
from menzil.deliver.broker.kept import Kept, Key
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.protocol import Broker
from menzil.deliver.broker.session import Session
from menzil.deliver.guard import Lookup, Target, read_server
from menzil.deliver.guard.resolve import system_lookup
from menzil.deliver.mqtt.session import MqttSession
from menzil.deliver.mqtt.slots import Slots
from menzil.deliver.mqtt.suspects import Suspects
from menzil.deliver.protocol import Endpoint, Surroundings

PORT, TLS_PORT = 1883, 8883


def target(config: Mapping[str, Any]) -> Target:
    """Return the server of a config. Raises RefusedUrlError."""
    host, tls = config["host"], config.get("tls")
    port = TLS_PORT if tls is not None and tls.get("enabled") is not False else PORT
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return read_server(f"{shown}:{int(config.get('port') or port)}", port)


class Mqtt(Broker):
    """Delivers to topics."""

    def __init__(self, surroundings: Surroundings, *, lookup: Lookup = system_lookup) -> None:
        super().__init__(surroundings, lookup=lookup)
        # Two workers may have one name, and two databases one endpoint: each must have ids of its own, because a server
        # throws out the older one of two clients with one id.
        self._mark = secrets.token_hex(4)
        self._endpoints: dict[int, tuple[Slots, Suspects]] = {}

    def targets(self, config: Mapping[str, Any]) -> tuple[Target, ...]:
        """Return the one server."""
        return (target(config),)

    async def ready(self, endpoint: Endpoint, plan: Plan, kept: Kept, deadline: float) -> Session:
        """Return a connection. Those that were given up with messages under way are replaced first."""
        known = self._endpoints.get(endpoint.id)
        beginning = f"{plan.config.get('client_id') or f'menzil-{endpoint.name}'}-{self._mark}"
        if known is None or known[0].beginning != beginning:
            known = self._endpoints[endpoint.id] = (Slots(beginning), Suspects())
        slots, suspects = known
        key: Key = (endpoint.id, endpoint.updated_at)
        async with slots.sweep:
            while (slot := slots.take_given_up()) is not None:
                kept.keep(key, await self._dial(plan, slots, slot, suspects, deadline))
        return kept.take(key) or await self._dial(plan, slots, slots.take(), suspects, deadline)

    async def _dial(self, plan: Plan, slots: Slots, slot: int, suspects: Suspects, deadline: float) -> Session:
        make = partial(MqttSession, slots=slots, slot=slot, suspects=suspects)
        try:
            return await dial(plan, self._guard, make, deadline, late_tls=False)
        except BaseException:
            slots.free(slot, unacknowledged=False)
            raise
