"""How far a job is, on a terminal: one line on stderr, asked from Spark's status tracker by a thread of its own."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds before the first word, so that short work stays quiet, and between two looks.
PATIENCE, PAUSE = 1.0, 0.3
WIDTH = 24


class Progress:
    """`with Progress(spark, "exporting"):` shows a bar while jobs run; nothing without a terminal. Driver."""

    def __init__(
        self, spark: SparkSession, what: str, *, stream: TextIO | None = None, show: bool | None = None
    ) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._what = what
        self._stream = stream or sys.stderr
        self._show = self._stream.isatty() if show is None else show
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="menzil progress", daemon=True)

    def __enter__(self) -> Self:
        if self._show:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        if self._show:
            self._thread.join()

    def _watch(self) -> None:
        began, shown = time.monotonic(), False
        while not self._over.wait(PAUSE):
            try:
                done, total, failed = count(self._tracker)
            except Exception:  # the session is ending; a bar is no reason to fail
                break
            seconds = time.monotonic() - began
            if total and seconds >= PATIENCE:
                self._stream.write("\r\x1b[K" + line(self._what, done, total, failed, seconds))
                self._stream.flush()
                shown = True
        if shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def count(tracker: object) -> tuple[int, int, int]:
    """Tasks done, tasks in all and tasks that failed, of the stages that run now."""
    stages: Callable[[], list[int]] = tracker.getActiveStageIds  # type: ignore[attr-defined]
    infos = [tracker.getStageInfo(stage) for stage in stages()]  # type: ignore[attr-defined]
    known = [info for info in infos if info is not None]
    return (
        sum(info.numCompletedTasks for info in known),
        sum(info.numTasks for info in known),
        sum(info.numFailedTasks for info in known),
    )


def line(what: str, done: int, total: int, failed: int, seconds: float) -> str:
    """`exporting [######------------------] 3 of 12 tasks, 14 s`."""
    full = WIDTH * done // total
    bar = "#" * full + "-" * (WIDTH - full)
    again = f", {failed} tried again" if failed else ""
    return f"{what} [{bar}] {done} of {total} tasks{again}, {seconds:.0f} s"
