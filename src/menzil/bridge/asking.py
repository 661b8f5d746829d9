"""Connections that are read from: dialled as for the way out, with questions in place of batches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar

from menzil.bridge.source import SourceError, Surroundings
from menzil.deliver.broker.dial import Make, dial
from menzil.deliver.broker.errors import EndpointError
from menzil.deliver.broker.plan import make_plan
from menzil.deliver.broker.session import Session
from menzil.deliver.guard import RefusedUrlError, Target
from menzil.deliver.http.errors import RefusedError
from menzil.deliver.http.tls import Contexts

T = TypeVar("T")


class Asking(Session):
    """A session whose questions fail with it."""

    def fail(self, error: Exception) -> None:
        """Nothing more comes from this connection."""
        super().fail(error)
        for answer in list(self.waiting):
            if not answer.done():
                answer.set_exception(SourceError(str(error).replace("for acknowledgements", "for records")))

    @property
    def waiting(self) -> set[asyncio.Future[Any]]:
        """Questions that have no answer yet."""
        found: set[asyncio.Future[Any]] = self.__dict__.setdefault("_waiting", set())
        return found

    async def answered(self, answer: asyncio.Future[T], seconds: float) -> T:
        """Wait for an answer. Without one in time the connection is given up."""
        if not self.is_open:
            raise SourceError(f"The connection to {self.peer} is closed")
        self.waiting.add(answer)
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            self.abort()
            raise SourceError(f"No answer from {self.peer} within {seconds:g} s") from None
        finally:
            self.waiting.discard(answer)


async def dialled(
    make: Make, config: Mapping[str, Any], targets: tuple[Target, ...], surroundings: Surroundings, *, late_tls: bool
) -> Session:
    """Return a connection that has logged in. Raises SourceError, whose text shows no secret."""
    try:
        plan = make_plan(config, targets, Contexts(alpn=()), surroundings.worker)
    except RefusedError as error:
        raise SourceError(str(error)) from None
    deadline = asyncio.get_running_loop().time() + plan.connect_seconds
    try:
        return await dial(plan, surroundings.guard, make, deadline, late_tls=late_tls)
    except RefusedUrlError as error:
        raise SourceError(error.reason) from None
    except EndpointError as error:
        raise SourceError(plan.hider.hide(str(error))) from None
