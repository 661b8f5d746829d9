"""Notices an event loop that an async handler blocks, and names the handler.

While the loop is blocked, the worker leases nothing, settles nothing and gives no sign of life: its leases run out and
messages are delivered again. Nothing in the loop can tell. So a thread looks twice a second whether the loop still
moves, and reads the stack of the loop's thread if it does not.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from time import monotonic
from types import FrameType

from menzil.worker import trace
from menzil.worker.held import Held
from menzil.worker.log import Log
from menzil.worker.slot import slot

#: Seconds between two signs of life of the loop, between two looks, and of silence that are reported first.
TICK, LOOK, BLOCKED = 0.2, 0.5, 1.0
_HINT = "blocking code belongs in a plain function, or in asyncio.to_thread"


class Watchdog:
    """Watches the loop it is started in."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._seen_at = monotonic()
        self._over = threading.Event()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to watch."""
        self._tick()
        threading.Thread(target=self._watch, name="menzil-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
        self._over.set()
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._seen_at = monotonic()
        self._timer = self._loop.call_later(TICK, self._tick)

    def _watch(self) -> None:
        said_at = blocked_since = 0.0
        while True:
            before = monotonic()
            if self._over.wait(LOOK):
                return
            now, seen_at = monotonic(), self._seen_at
            if now - before > LOOK + BLOCKED:
                continue  # this thread did not run either: the whole process was stopped, or the machine slept
            if blocked_since and seen_at > blocked_since:
                self._log.warning("loop_runs_again", after_seconds=seen_at - blocked_since)
                blocked_since = said_at = 0.0
            # Once, and again whenever it has taken twice as long.
            if now - seen_at >= max(BLOCKED, 2 * said_at):
                blocked_since, said_at = seen_at, now - seen_at
                self._report(said_at)

    def _report(self, seconds: float) -> None:
        frame = sys._current_frames().get(self._thread_id)
        held = _held(frame)
        self._log.error(
            "loop_blocked",
            channel=held and held.channel,
            id=held and held.id,
            seconds=seconds,
            at=trace.place(frame),
            hint=held and _HINT,
        )


def _held(frame: FrameType | None) -> Held | None:
    """Find the message that is being delivered in this stack."""
    while frame is not None:
        if frame.f_code is slot.__code__:
            held = frame.f_locals.get("held")
            return held if isinstance(held, Held) else None
        frame = frame.f_back
    return None
