"""Questions that several pages ask: answered once for all of them.

Channels, turns, workers and the exporter all ask for menzil.channel_state(). While one asks, the others wait for its
answer, and those who come a little later get it, too.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from menzil.ops import endpoints, history, looking, upkeep, watch, why
from menzil.ops.op import Op

T = TypeVar("T")

#: Seconds for which an answer is good, by statement. The health check and names of channels change slowly.
COMMON: dict[str, float] = {
    why.channel_state().text: 2.0,
    watch.metrics().text: 2.0,
    watch.health_check().text: 5.0,
    watch.get_worker_status().text: 2.0,
    endpoints.get_endpoint_health().text: 2.0,
    history.dlq_summary().text: 2.0,
    history.dlq_causes().text: 2.0,
    looking.channels(1).text: 10.0,
    upkeep.copy_notice().text: 5.0,
}
#: How many times as long as it took an answer is good.
TIMES = 40
MOST = 128


@dataclass
class _Asked:
    """A question: its answer, now or soon, as of when it is, how long it took, and until when it is good."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    answer: Future[Any] = field(default_factory=Future)
    until: float | None = None
    took: float = 0.0


@dataclass(frozen=True)
class FromOther:
    """Of when an answer is that another page asked for, and how many seconds the database took for it."""

    at: datetime
    took: float


class Common:
    """Answers by statement and values. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: OrderedDict[tuple[str, tuple[Any, ...]], _Asked] = OrderedDict()

    def ask(self, op: Op[T], ask: Callable[[Op[T]], T], patience: float) -> tuple[T, FromOther | None]:
        """The answer, and more about it if another one asked for it. TimeoutError if that takes too long."""
        good_for = COMMON.get(op.text)
        if good_for is None:
            return ask(op), None
        key = (op.text, op.params)
        with self._lock:
            known = self._asked.get(key)
            if known is not None and (known.until is None or time.monotonic() < known.until):
                own = None
            else:
                own = self._asked[key] = _Asked()
                self._asked.move_to_end(key)
                while len(self._asked) > MOST:
                    self._asked.popitem(last=False)
        if own is not None:
            return self._lead(key, own, op, ask, good_for), None
        assert known is not None
        error = known.answer.exception(patience)
        # What the other one met, a lock or the end of its time, is not ours.
        if error is not None:
            return ask(op), None
        return _copied(known.answer.result()), FromOther(known.at, known.took)

    def _lead(
        self, key: tuple[str, tuple[Any, ...]], own: _Asked, op: Op[T], ask: Callable[[Op[T]], T], good_for: float
    ) -> T:
        began = time.monotonic()
        try:
            found = ask(op)
        except BaseException as error:
            with self._lock:
                if self._asked.get(key) is own:
                    del self._asked[key]
            own.answer.set_exception(error)
            raise
        ended = time.monotonic()
        own.took = ended - began
        own.until = ended + max(good_for, TIMES * own.took)
        own.answer.set_result(found)
        return _copied(found)

    def forget(self) -> None:
        """Let everything be asked anew."""
        with self._lock:
            self._asked.clear()


def _copied(found: T) -> T:
    """The same rows, so that a page that changes them changes nothing for the others."""
    if isinstance(found, list):
        return [dict(row) if isinstance(row, dict) else row for row in found]  # type: ignore[return-value]
    return found
