"""How far Spark is, for a user who waits: a line that is written over at a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from menzil.cli.pipeline.options import Workshop
from menzil.cli.show import duration

#: Seconds between two looks, and between two lines where they stay.
LOOK = 0.5
LINE = 15.0

FIRST = (
    "This is the first run with this Java and this Spark: it also writes their classes into an archive. "
    "That takes longer, and later runs start faster."
)

#: Letters of the bar.
WIDTH = 24


@contextmanager
def watching(shop: Workshop, *, as_json: bool) -> Iterator[None]:
    """Show how far Spark is until the work is done; nothing with --json."""
    if as_json:
        yield
        return
    done = Event()
    watcher = Thread(target=_watch, args=(shop, done), name="menzil watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join(timeout=5)


def _watch(shop: Workshop, done: Event) -> None:
    started = said = time.monotonic()
    terminal, told = sys.stderr.isatty(), False
    while not done.wait(LOOK):
        now = time.monotonic()
        if not told and not shop.borrowed and _is_first():
            told = True
            sys.stderr.write(f"{FIRST}\n")
            sys.stderr.flush()
        if not terminal and now - said < LINE:
            continue
        text = _now(shop) or (None if terminal else "Working")
        if text is None or done.is_set():
            continue
        said = now
        sys.stderr.write(f"\r\x1b[K{text}" if terminal else f"{text}, {duration(now - started)}\n")
        sys.stderr.flush()
        if terminal:
            done.wait(LOOK)
            sys.stderr.write("\r\x1b[K")  # the next output begins on an empty line
            sys.stderr.flush()


def _is_first() -> bool:
    if "menzil.spark.session.launch" not in sys.modules:  # imported where Spark is started
        return False
    from menzil.spark.session import launch

    return launch.is_first()


def _now(shop: Workshop) -> str | None:
    """What Spark is at, or None when it is at nothing."""
    if "spark" not in shop.__dict__:
        return "Starting Spark"
    tracker = shop.spark.sparkContext.statusTracker()
    stages = [found for number in tracker.getActiveStageIds() if (found := tracker.getStageInfo(number)) is not None]
    return (
        bar(sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages))
        if stages
        else None
    )


def bar(done: int, total: int) -> str:
    """`[======>                 ] 3 of 12 tasks`."""
    full = WIDTH * done // total if total else 0
    head = ">" if full < WIDTH else ""
    return f"[{('=' * full + head).ljust(WIDTH)}] {done:,} of {total:,} tasks"
