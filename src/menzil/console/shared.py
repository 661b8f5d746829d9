"""Answers that all viewers share: asked for once at a time, and as seldom as they are dear.

An answer is good for two seconds, and for twenty times as long as the database worked for it. A chart is good for
longer: it shows steps that are over, and the next one is over only when a step has passed. After that it is asked for
again if the budget has room. If not, or while the new answer takes long, viewers get the one that is known: a page says
of when it is. An answer that was cut for want of time does not take the place of the last good one. So ten open pages
slow themselves down, and not the workers beside them. A cheap answer does not wait for the budget.

What a page has to tell `soon`, such as that nothing holds a message any more, is asked for every two seconds, unless
two answers in a row were dear. One alone says little: the first of a new connection takes longer than the next, and a
busy machine makes any of them slow.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from menzil.console.budget import Budget

GOOD_FOR = 2.0
#: An answer keeps the database busy for at most this share of the time.
SHARE = 1 / 20
#: The same for a part that was cut: it is worth nothing, and a look that cannot end is dear.
SHARE_OF_TROUBLE = 1 / 4
#: Seconds that an answer may be old when a page is opened, and when an open page looks again.
OPENED, OPEN = 10.0, 120.0
#: Seconds of the database that make an answer dear, and seconds that a cheaper one may be old.
DEAR, CHEAP_AGE = 0.015, 3.0
#: The same seconds for what is told soon: as much as its own share allows in the time that an answer is good for.
SOON_DEAR = GOOD_FOR * SHARE
MOST = 512


@dataclass
class _Known:
    """One question: its answer, when it came, and the answer before it."""

    future: Future[Any]
    before: Future[Any] | None = None
    ended: float | None = None
    good_for: float = GOOD_FOR
    most_age: float = OPEN
    soon: bool = False
    cost: float = 0.0  # seconds of the database
    cost_before: float = 0.0  # the same of the answer before; nothing where there was none
    last: tuple[Future[Any], float] | None = None  # the last good answer before this one, and when it came

    def end(self, future: Future[Any]) -> None:
        answer = None if future.cancelled() or future.exception() else future.result()
        spent = float(getattr(answer, "spent", 0.0))
        trouble = getattr(answer, "trouble", None) is not None
        self.cost = spent + float(getattr(answer, "saved", 0.0))
        if self.soon:
            counted = min(self.cost, self.cost_before)
            spent, self.most_age = min(spent, counted), OPEN if counted >= SOON_DEAR else 0.0
        else:
            self.most_age = OPEN if trouble or self.cost >= DEAR else CHEAP_AGE
        holds = float(getattr(answer, "holds", 0.0))
        self.good_for = max(GOOD_FOR, holds, spent / (SHARE_OF_TROUBLE if trouble else SHARE))
        if not is_slow(answer):
            self.last = None
        elif self.cost < DEAR:  # it only stood in line until the time of another page was over
            self.good_for = self.most_age = 0.0
        self.before = None
        self.ended = time.monotonic()

    def good(self) -> tuple[Future[Any], float] | None:
        """The last good answer, this one or one before it."""
        if self.ended is not None and not _has_trouble(self.future):
            return self.future, self.ended
        return self.last

    def stand_in(self) -> Future[Any] | None:
        """The last good answer before this one, if it may still be shown."""
        if self.last is None or time.monotonic() - self.last[1] >= OPEN:
            return None
        return self.last[0]


@dataclass(frozen=True)
class Found:
    """An answer, now or soon; and one that is known, for the case that it does not come in time.

    `last` is the last good one, for the case that it does not come at all.
    """

    future: Future[Any]
    known: Future[Any] | None = None
    last: Future[Any] | None = None


class Shared:
    """Futures by key. The first who asks starts the work, the others wait for the same future."""

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self._lock = threading.Lock()
        self._found: OrderedDict[Hashable, _Known] = OrderedDict()

    def get(
        self, key: Hashable, start: Callable[[], Future[Any]], most_age: float = OPENED, *, soon: bool = False
    ) -> Found:
        """The answer for this key: one under way, one that is good enough, or a new one."""
        with self._lock:
            known = self._found.get(key)
            before = None
            if known is not None:
                if known.ended is None:
                    return Found(known.future, known.before, known.stand_in())
                age = time.monotonic() - known.ended
                waits = age < min(most_age, known.most_age)
                if age < known.good_for or (waits and not self._budget.has_room()):
                    return Found(known.future, last=known.stand_in())
                before = known.future if age < most_age and not _has_trouble(known.future) else None
            cost_before = known.cost if known is not None else 0.0
            last = known.good() if known is not None else None
            found = self._found[key] = _Known(start(), before, soon=soon, cost_before=cost_before, last=last)
            stand_in = found.stand_in()
            self._found.move_to_end(key)
            while len(self._found) > MOST:
                self._found.popitem(last=False)
        found.future.add_done_callback(found.end)
        return Found(found.future, before, stand_in)

    def forget(self) -> None:
        """Let everything be asked anew: an operator has just changed something."""
        with self._lock:
            self._found.clear()


def is_slow(answer: Any) -> bool:
    """Whether an answer is missing for want of time alone."""
    return bool(getattr(getattr(answer, "trouble", None), "slow", False))


def _has_trouble(future: Future[Any]) -> bool:
    if future.cancelled() or future.exception():
        return True
    return getattr(future.result(), "trouble", None) is not None
