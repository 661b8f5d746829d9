"""When each role last succeeded, and how long it went without."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple


class Key(NamedTuple):
    """What is noted: a role and where it succeeded, such as a channel or a function."""

    role: str
    place: str


class Gap(NamedTuple):
    """The longest time without a success."""

    seconds: float
    key: Key

    def __str__(self) -> str:
        return f"{self.key.role} {self.key.place}: {self.seconds:.2f} s without a success"


class Diary:
    """Times of successes by role and place, written by many threads; and errors, of which there should be none."""

    def __init__(self) -> None:
        self._times: dict[Key, list[float]] = defaultdict(list)
        self._errors: list[str] = []
        self._lock = threading.Lock()

    def note(self, role: str, place: str) -> None:
        with self._lock:
            self._times[Key(role, place)].append(time.monotonic())

    def fail(self, role: str, error: Exception) -> None:
        with self._lock:
            self._errors.append(f"{role}: {type(error).__name__}: {error}")

    def errors(self) -> list[str]:
        """What went wrong since the last time this was asked."""
        with self._lock:
            told, self._errors = self._errors, []
            return told

    def gap(self, key: Key, begin: float, end: float) -> Gap:
        """The longest gap between two successes from begin to end."""
        with self._lock:
            times = [at for at in self._times[key] if begin < at < end]
        edges = [begin, *times, end]
        return Gap(max(b - a for a, b in pairwise(edges)), key)

    def seen(self, key: Key, since: float) -> bool:
        with self._lock:
            return bool(self._times[key]) and self._times[key][-1] > since
