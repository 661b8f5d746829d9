"""How much of the database the console may take for pages that are open: a twentieth of one connection, over time."""

from __future__ import annotations

import threading
import time

#: Seconds of database time for each second that passes.
RATE = 0.05
#: Seconds that may be saved up, or owed: who opens a page gets it, and open pages wait for it.
MOST = 2.0


class Budget:
    """A balance that grows with time and falls with what the database worked. Safe to share between threads."""

    def __init__(self, rate: float = RATE, most: float = MOST) -> None:
        self._rate, self._most = rate, most
        self._lock = threading.Lock()
        self._balance, self._at = most, time.monotonic()

    def spend(self, seconds: float) -> None:
        """The database worked for so long."""
        with self._lock:
            self._balance = max(self._now() - seconds, -self._most)

    def has_room(self) -> bool:
        """Whether an open page may be asked for again."""
        with self._lock:
            self._balance = self._now()
            return self._balance > 0

    def _now(self) -> float:
        now = time.monotonic()
        passed, self._at = now - self._at, now
        return min(self._balance + passed * self._rate, self._most)
