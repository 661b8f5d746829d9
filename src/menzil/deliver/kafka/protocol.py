"""The protocol `kafka`: a batch is handed to an idempotent producer, and every record is acknowledged by its offset."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from menzil.deliver.broker.errors import bad_endpoint
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.protocol import Broker
from menzil.deliver.guard import Lookup, RefusedUrlError, ResolveError, Target, read_server
from menzil.deliver.guard.resolve import system_lookup
from menzil.deliver.kafka.cluster import Cluster
from menzil.deliver.kafka.flight import Flight, Route
from menzil.deliver.kafka.producers import Producers
from menzil.deliver.kafka.token import Tokens
from menzil.deliver.protocol import Endpoint, Refused, Surroundings
from menzil.model.message import Message
from menzil.model.outcome import Fail, Outcome

PORT = 9092


class Kafka(Broker):
    """Delivers to topics."""

    def __init__(self, surroundings: Surroundings, *, lookup: Lookup = system_lookup) -> None:
        super().__init__(surroundings, lookup=lookup)
        self._routes: dict[int, Route] = {}
        self._producers = Producers()
        self._tokens = Tokens(surroundings, lookup)

    def targets(self, config: Mapping[str, Any]) -> tuple[Target, ...]:
        """Return the servers that tell about the cluster. Its brokers name their addresses by themselves."""
        return tuple(read_server(server, PORT) for server in config["servers"])

    def refresh(self, surroundings: Surroundings) -> None:
        """Take new settings."""
        super().refresh(surroundings)
        self._tokens.refresh(surroundings)

    async def close(self) -> None:
        """Close all producers."""
        await super().close()
        self._routes.clear()
        await self._producers.close()
        await self._tokens.close()

    @property
    def kept(self) -> int:
        """How many producers are open."""
        return self._producers.count

    async def carry(
        self, messages: Sequence[Message], endpoint: Endpoint, plan: Plan, deadline: float
    ) -> Sequence[Outcome]:
        """Deliver a batch. `deadline` bounds the way to the cluster; the acknowledgements have timeout_seconds."""
        refused = await self._judge(plan, deadline)
        if refused is not None:
            return [refused] * len(messages)
        route = self._route(endpoint, plan)
        return await self._batch(messages, range(len(messages)), route, plan, alone=False)

    async def _judge(self, plan: Plan, deadline: float) -> Fail | None:
        """Ask the guard for every server, because librdkafka may take any of them."""
        loop, error = asyncio.get_running_loop(), "The endpoint has no servers"
        found = False
        for target in plan.targets:
            try:
                await self._guard.resolve(target, max(0.0, min(deadline - loop.time(), plan.connect_seconds)))
                found = True
            except RefusedUrlError as failure:
                return Refused(failure.reason, response={"class": "endpoint"})
            except ResolveError as failure:
                error = failure.reason
        return None if found else bad_endpoint(error)

    def _route(self, endpoint: Endpoint, plan: Plan) -> Route:
        route = self._routes.get(endpoint.id)
        if route is None or route.since != endpoint.updated_at:
            if len(self._routes) >= 4096:
                self._routes.clear()
            route = self._routes[endpoint.id] = Route(plan, endpoint.updated_at)
        return route

    async def _batch(
        self, messages: Sequence[Message], places: Sequence[int], route: Route, plan: Plan, *, alone: bool
    ) -> Sequence[Outcome]:
        """Deliver some messages by one producer. `alone` puts each of them into a request of its own."""
        cluster = self._producers.take(route.name + " alone" * alone, lambda: self._make(route, plan, alone))
        chosen = [messages[place] for place in places]
        flight = Flight(chosen, cluster, route, plan, details=self.captures(plan))
        try:
            await flight.go()
        except BaseException:
            # Cancelled: another worker may have the messages by now, so they must not stay in librdkafka. Those of
            # other batches must, because nothing tells whether they are written.
            if cluster.flying == 1:
                self._producers.retire(cluster)
            raise
        finally:
            self._producers.give(cluster)
        if flight.is_hopeless:
            self._producers.retire(cluster)
        outcomes = flight.outcomes(alone=alone)
        if again := [place for place, outcome in enumerate(outcomes) if outcome is None]:
            # The broker judged several messages together: each of these goes once more, in a request of its own.
            found = await self._batch(messages, [places[place] for place in again], route, plan, alone=True)
            for place, outcome in zip(again, found, strict=True):
                outcomes[place] = outcome
        return [outcome for outcome in outcomes if outcome is not None]

    def _make(self, route: Route, plan: Plan, alone: bool) -> Cluster:
        token = self._tokens.getter(route.auth, plan) if route.auth.get("type") == "oauth2" else None
        return Cluster(route.properties | ({"batch.num.messages": 1} if alone else {}), token)
