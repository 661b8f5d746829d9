"""PUBLISH."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from menzil.client.base import AsyncClient
from menzil.model.options import SendOptions
from menzil.ops import pubsub as ops
from menzil.ops.borrow import AsyncBorrowed


class AsyncPubSub(AsyncClient):
    """Events, and who gets a copy of them. With `conn` they are part of your transaction, and vanish with it."""

    async def create_event_type(
        self,
        name: str,
        description: str | None = None,
        schema: Mapping[str, Any] | bool | None = None,
        *,
        conn: AsyncBorrowed | None = None,
    ) -> None:
        """Make an event type, or change it: what is left out goes back to its default.

        The schema is JSON Schema, draft 2020-12; a payload that breaks it cannot be published.
        """
        await self._run(ops.create_event_type(name, description, schema), conn)

    async def drop_event_type(self, name: str, *, conn: AsyncBorrowed | None = None) -> None:
        """Forget an event type and its subscriptions; what was published stays."""
        await self._run(ops.drop_event_type(name), conn)

    async def subscribe(
        self,
        event_type: str,
        endpoint: str,
        filter: Mapping[str, Any] | None = None,
        *,
        conn: AsyncBorrowed | None = None,
    ) -> int:
        """Let an endpoint or a channel get a copy of these events; return the id of the subscription.

        With a filter, only of those whose payload contains it. The same subscription twice is one.
        """
        return await self._run(ops.subscribe(event_type, endpoint, filter), conn)

    async def unsubscribe(
        self, subscription: int | str, endpoint: str | None = None, *, conn: AsyncBorrowed | None = None
    ) -> int:
        """End a subscription by its id, or all of an endpoint by event type and endpoint; return how many."""
        return await self._run(ops.unsubscribe(subscription, endpoint), conn)

    async def publish(
        self, event_type: str, payload: Any, *, conn: AsyncBorrowed | None = None, **options: Unpack[SendOptions]
    ) -> int:
        """Send a copy of the event to every subscriber; return how many messages stand for it.

        Options are those of send, and the same for every copy.
        """
        spans = self._spans()
        if spans is None:
            return await self._run(ops.publish(event_type, payload, dumps=self._dumps, **options), conn)
        with spans.publish(event_type, options) as publishing:
            op = ops.publish(event_type, payload, dumps=self._dumps, **publishing.options)
            return publishing.published(await self._run(op, conn), self._where(conn))

    async def publish_batch(self, events: Iterable[Mapping[str, Any]], *, conn: AsyncBorrowed | None = None) -> int:
        """Publish many events, all or none; return how many messages stand for them.

        Each is a dict with event_type, payload, and the options of send.
        """
        spans = self._spans()
        if spans is not None and (events := list(events)):
            with spans.publish_batch(events) as publishing:
                batches = ops.publish_batch(publishing.messages, dumps=self._dumps)
                return publishing.published(sum(await self._run_all(batches, conn)), self._where(conn))
        batches = ops.publish_batch(events, dumps=self._dumps)
        return sum(await self._run_all(batches, conn)) if batches else 0
