"""Connections between requests: kept for a while, bounded in number; and the clock of those that are at work.

Deadlines are looked at twenty times a second, all together, instead of one timer per request: a timer costs more than
everything else that is done for a request here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from menzil.deliver.wire.connection import Connection
from menzil.deliver.wire.route import Address, Route

IDLE_SECONDS = 30.0
IDLE_PER_ROUTE = 256
IDLE_TOTAL = 512
_TICK = 0.05
_SLOW_TICK = 1.0


class Pool:
    """All connections of one client that are open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.closed = False
        self._busy: set[Connection] = set()
        self._idle: dict[Connection, None] = {}  # the one that has waited longest first
        self._timer: asyncio.TimerHandle | None = None
        self._fast = False  # whether the timer is set for deadlines, or only for kept connections

    def take(self, route: Route, addresses: Sequence[Address]) -> Connection | None:
        """Return a kept connection to one of these addresses. The last used is the least likely to be stale."""
        if not route.idle_count:
            return None
        for _, address in addresses:
            kept = route.idle.get(address)
            while kept:
                connection = kept[-1]
                self._unkeep(connection)
                if connection.usable():
                    return connection
                connection.abort()
        return None

    def busy(self, connection: Connection) -> None:
        """Watch the deadline of a connection."""
        self._busy.add(connection)
        if not self._fast:
            self._set_timer(_TICK)

    def keep(self, connection: Connection) -> None:
        """Take a connection back after an answer that left it clean."""
        route = connection.route
        self._busy.discard(connection)
        if self.closed or route.idle_count >= IDLE_PER_ROUTE:
            connection.abort()
            return
        if len(self._idle) >= IDLE_TOTAL:
            next(iter(self._idle)).abort()
        connection.idle_since = self.loop.time()
        self._idle[connection] = None
        route.idle.setdefault(connection.address, []).append(connection)
        route.idle_count += 1

    def forget(self, connection: Connection) -> None:
        """Let go of a connection that is closed."""
        self._busy.discard(connection)
        if connection in self._idle:
            self._unkeep(connection)

    def _unkeep(self, connection: Connection) -> None:
        del self._idle[connection]
        route = connection.route
        kept = route.idle[connection.address]
        if kept[-1] is connection:
            kept.pop()
        else:
            kept.remove(connection)
        if not kept:
            del route.idle[connection.address]
        route.idle_count -= 1

    def _set_timer(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fast = delay == _TICK
        self._timer = self.loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._fast = False
        now = self.loop.time()
        for connection in [one for one in self._busy if one.deadline <= now]:
            connection.expire()
        old = now - IDLE_SECONDS
        while self._idle and (connection := next(iter(self._idle))).idle_since <= old:
            connection.abort()
        if self._busy or self._idle:
            self._set_timer(_TICK if self._busy else _SLOW_TICK)

    def counts(self) -> tuple[int, int]:
        """Return how many connections are at work, and how many are kept."""
        return len(self._busy), len(self._idle)

    def close(self) -> None:
        """Drop everything."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        for connection in [*self._busy, *self._idle]:
            connection.stop()
