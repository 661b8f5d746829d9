"""Connections between batches: kept for a while under the endpoint that they belong to, and bounded in number."""

from __future__ import annotations

import asyncio
from datetime import datetime

from menzil.deliver.broker.session import Session

IDLE_SECONDS = 30.0
#: Connections that are kept, of all endpoints.
MOST = 256
_TICK = 1.0

Key = tuple[int, datetime]  # endpoint and updated_at: a changed config gets new connections


class Kept:
    """Idle connections of one protocol."""

    def __init__(self) -> None:
        self._idle: dict[Session, Key] = {}  # the one that has waited longest first
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, key: Key) -> Session | None:
        """Return a kept connection of this endpoint, the last used first."""
        for session in reversed([one for one, its in self._idle.items() if its == key]):
            del self._idle[session]
            if session.keepable:
                return session
            session.abort()
        return None

    def keep(self, key: Key, session: Session) -> None:
        """Take a connection back that has nothing under way."""
        if self._closed or not session.keepable:
            session.abort()
            return
        if len(self._idle) >= MOST:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            oldest.abort()
        session.idle_since = asyncio.get_running_loop().time()
        self._idle[session] = key
        self._tick_later()

    def forget(self, endpoint_id: int) -> None:
        """Close the connections of an endpoint whose config has changed."""
        for session in [one for one, its in self._idle.items() if its[0] == endpoint_id]:
            del self._idle[session]
            session.abort()

    @property
    def count(self) -> int:
        """How many connections are kept."""
        return len(self._idle)

    def _tick_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick)

    def _tick(self) -> None:
        self._timer = None
        old = asyncio.get_running_loop().time() - IDLE_SECONDS
        for session in [one for one in self._idle if one.idle_since <= old or not one.is_open]:
            del self._idle[session]
            session.abort()
        if self._idle:
            self._tick_later()

    def close(self) -> None:
        """Close all of them."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for session in self._idle:
            session.abort()
        self._idle.clear()
