"""Long work at a terminal: how far, how fast, how long still. Silent without a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from menzil.cli.show import duration, say

#: Seconds before the first word, so that short work stays quiet, and between two of them.
PATIENCE = 0.5


class Progress:
    """One line on stderr that is written over."""

    def __init__(self, what: str, total: int | None = None) -> None:
        self.what = what
        self.total = total
        self.done = 0
        self._started = self._said = time.monotonic()
        self._watched = sys.stderr.isatty()
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()
        if error is not None and self.done:  # committed parts stay done: say how many
            say(f"Stopped: {self.done:,} {self.what}.")

    def clear(self) -> None:
        """Make room for a line of data, which may go to the same terminal."""
        if self._shown:
            self._shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def add(self, number: int) -> None:
        """Count what was done, and say so now and then."""
        self.done += number
        now = time.monotonic()
        if self._watched and now - self._said >= PATIENCE:
            self._said, self._shown = now, True
            sys.stderr.write("\r\x1b[K" + line(self.what, self.done, self.total, now - self._started))
            sys.stderr.flush()


def line(what: str, done: int, total: int | None, seconds: float) -> str:
    """`12,000 of 50,000 sent, 24 %, 3,400/s, 11 s left`."""
    rate = done / seconds if seconds > 0 else 0.0
    parts = [f"{done:,} of {total:,} {what}" if total else f"{done:,} {what}"]
    if total:
        parts.append(f"{min(100, 100 * done // total)} %")
    parts.append(f"{rate:,.0f}/s")
    if total and rate:
        parts.append(f"{duration(max(total - done, 0) / rate)} left")
    return ", ".join(parts)
