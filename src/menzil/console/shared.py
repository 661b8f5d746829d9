"""Answers that all viewers share: computed once at a time, and good for two seconds."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any

GOOD_FOR = 2.0
MOST = 512


class Shared:
    """Futures by key. The first who asks starts the work, the others wait for the same future."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[Hashable, tuple[Future[Any], list[float]]] = OrderedDict()

    def get(self, key: Hashable, start: Callable[[], Future[Any]]) -> Future[Any]:
        """The answer for this key: one under way, one that is fresh enough, or a new one."""
        with self._lock:
            known = self._found.get(key)
            if known is not None and (not known[1] or time.monotonic() - known[1][0] < GOOD_FOR):
                return known[0]
            future, ended = start(), list[float]()
            self._found[key] = (future, ended)
            self._found.move_to_end(key)
            while len(self._found) > MOST:
                self._found.popitem(last=False)
        future.add_done_callback(lambda _: ended.append(time.monotonic()))
        return future

    def forget(self) -> None:
        """Let everything be asked anew: an operator has just changed something."""
        with self._lock:
            self._found.clear()
