"""What a protocol is: the few methods a worker needs to deliver messages to endpoints.

A third party registers one by an entry point of the group `menzil.protocols`, whose name is the protocol's and whose
object is called once per worker with a Surroundings and returns a Protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, runtime_checkable
from typing import Protocol as Interface

from menzil.model.message import Message
from menzil.model.outcome import Fail, Outcome


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A destination as it is configured now, secrets included. Its repr shows none of them."""

    id: int
    name: str
    protocol: str
    config: Mapping[str, Any] = field(repr=False)
    updated_at: datetime  # changes with the config: all that is kept per endpoint is kept under (id, updated_at)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every protocol of one worker is told: the settings that concern delivery, read again every few seconds."""

    settings: Mapping[str, str]  # http_allow_internal_urls, http_allow_http, http_allowed_networks, capture_response
    worker: str


@dataclass(frozen=True, slots=True)
class Refused(Fail):
    """The settings of the worker forbid this delivery. It is final only if they were read after the delivery began."""


class Protocol(Interface):
    """One kind of destination. All methods run in the worker's event loop; none may block it."""

    async def deliver(self, message: Message, endpoint: Endpoint) -> Outcome:
        """Deliver once, within the endpoint's deadline. Never raises for what the other side did: that is a Fail."""
        ...

    def refresh(self, surroundings: Surroundings) -> None:
        """Take new settings."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


@runtime_checkable
class Batching(Interface):
    """What a protocol has besides, if it delivers many messages of one endpoint at once: the worker then calls this."""

    batch: int  # most messages of one call

    async def deliver_many(self, messages: Sequence[Message], endpoint: Endpoint) -> Sequence[Outcome]:
        """Deliver each message once, within the endpoint's deadline, and return one outcome for each, in their order.

        The worker has up to three calls under way for an endpoint. One bad message never fails the others. When the
        call is cancelled, the messages are handed back, and may be delivered again with the same id.
        """
        ...
