"""Producers of one protocol: shared by endpoints with equal properties, closed when idle, bounded in number."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from menzil.deliver.kafka.cluster import Cluster

IDLE_SECONDS = 30.0
#: Producers that are kept. Each has three threads and a connection to every broker that it uses.
MOST = 64
_TICK = 1.0
_CLOSE_SECONDS = 5.0


class Producers:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._open: dict[str, Cluster] = {}  # by fingerprint, the one that was used longest ago first
        self._ending: set[Cluster] = set()  # retired, with batches under way
        self._timer: asyncio.TimerHandle | None = None

    def take(self, name: str, make: Callable[[], Cluster]) -> Cluster:
        """Return the producer of this name for one batch; `give` takes it back."""
        cluster = self._open.pop(name, None)
        if cluster is not None and not cluster.usable:
            self.retire(cluster)
            cluster = None
        if cluster is None:
            self._make_room()
            cluster = make()
        self._open[name] = cluster
        cluster.flying += 1
        return cluster

    def give(self, cluster: Cluster) -> None:
        """A batch is over."""
        cluster.flying -= 1
        cluster.idle_since = asyncio.get_running_loop().time()
        if not cluster.flying and cluster in self._ending:
            self._ending.discard(cluster)
            cluster.close()
        self._tick_later()

    def retire(self, cluster: Cluster) -> None:
        """No more batches for this producer. It closes when those under way are over."""
        for name in [name for name, each in self._open.items() if each is cluster]:
            del self._open[name]
        if cluster.flying:
            self._ending.add(cluster)
        else:
            cluster.close()

    @property
    def count(self) -> int:
        """How many producers are open."""
        return len(self._open) + len(self._ending)

    def _make_room(self) -> None:
        if len(self._open) >= MOST:
            idle = next((each for each in self._open.values() if not each.flying), None)
            if idle is not None:
                self.retire(idle)

    def _tick_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick)

    def _tick(self) -> None:
        self._timer = None
        old = asyncio.get_running_loop().time() - IDLE_SECONDS
        for cluster in [each for each in self._open.values() if not each.flying and each.idle_since <= old]:
            self.retire(cluster)
        if self._open:
            self._tick_later()

    async def close(self) -> None:
        """Close all of them. What they still hold is thrown away before this returns."""
        if self._timer is not None:
            self._timer.cancel()
        every = [*self._open.values(), *self._ending]
        self._open.clear()
        self._ending.clear()
        for cluster in every:
            cluster.close()
        if every:
            waiting = [asyncio.create_task(cluster.is_closed.wait()) for cluster in every]
            _, late = await asyncio.wait(waiting, timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
