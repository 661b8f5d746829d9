"""Actors for races: each has a connection of its own, and the stage sees who waits for whom.

An actor gives up on a lock after `LOCK_TIMEOUT`: when somebody stays open and the others go on, that is the proof that
nobody waited for him. Who is meant to wait is hired as `patient`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from tests.races.actor import Actor
from tests.races.ground import Ground

T = TypeVar("T")
DEADLINE = 60.0


def poll(what: Callable[[], bool], why: str, seconds: float = DEADLINE) -> None:
    """Waits until it is true; asks again at once, since every question is a round trip to the server."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"in {seconds} s it did not happen that {why}"


class Stage:
    """Hires actors, runs them in threads, and lets nobody go home with a deadlock."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.dsn = ground.ready()
        self._actors: list[Actor] = []
        self._acts: list[Future[Any]] = []
        self._pool = ThreadPoolExecutor(32)
        self.watcher = self.hire()

    def hire(self, *, patient: bool = False, new: bool = False) -> Actor:
        """An actor, on a session of its own that earlier races may have used unless it must be new."""
        actor = Actor(self._ground.lend(new), patient=patient)
        self._actors.append(actor)
        return actor

    def start(self, act: Callable[..., T], *args: Any, **named: Any) -> Future[T]:
        self._acts.append(self._pool.submit(act, *args, **named))
        return self._acts[-1]

    def waits(self, actor: Actor, for_whom: Actor | None = None) -> bool:
        blockers = self.watcher.one("select pg_blocking_pids(%s)", actor.pid)
        return bool(blockers) if for_whom is None else for_whom.pid in blockers

    def until_waiting(self, actor: Actor, for_whom: Actor | None = None) -> None:
        """Returns when this actor waits for a lock, of this other one if named."""
        poll(lambda: self.waits(actor, for_whom), "somebody waits for a lock")

    def sweep(self) -> None:
        """All janitors once: whatever could become ready by itself now is."""
        self.watcher.run("select menzil.maintain()")

    def nothing_is_ready(self, *channels: str) -> bool:
        self.sweep()
        return self.watcher.dequeue(10, *channels) == [] and self.watcher.dequeue(10, *channels) == []

    def live(self) -> int:
        return self.watcher.one("select count(*) from menzil.queue")

    @contextmanager
    def open(self) -> Iterator[Stage]:
        try:
            yield self
        finally:
            # Who is still at work after a failed test is stopped, so that it ends now and not at some timeout.
            if not all(act.done() for act in self._acts):
                for actor in self._actors:
                    actor.conn.cancel()
                    actor.conn.close()
            self._pool.shutdown(wait=True, cancel_futures=True)
            for actor in self._actors:
                self._ground.take_back(actor.conn, actor.pid)
            deadlocks = self._ground.deadlocks()
            self._ground.tidy()
        assert deadlocks == 0, f"{deadlocks} deadlocks"
