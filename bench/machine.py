"""Who else uses the machine: a figure measured beside a busy neighbour says little, and the report must say so."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

QUIET = 0.15


def times() -> tuple[float, float]:
    """Processor seconds of the whole machine since it started: busy ones and all of them."""
    with suppress(OSError, ValueError, IndexError):
        ticks = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        hertz = os.sysconf("SC_CLK_TCK")
        return (sum(ticks) - ticks[3] - ticks[4]) / hertz, sum(ticks) / hertz  # less idle and waiting for the disk
    return 0.0, 0.0


def others(before: tuple[float, float], ours: float = 0.0) -> float:
    """The share of the machine used since `before` by anybody but us; 0 where that cannot be told."""
    busy, whole = (now - then for now, then in zip(times(), before, strict=True))
    return min(1.0, max(0.0, busy - ours) / whole) if whole > 0 else 0.0


def look(seconds: float = 0.3) -> float:
    """The share that others use while we do nothing."""
    before = times()
    time.sleep(seconds)
    return others(before)


def wait_for_quiet(patience: float) -> float:
    """Wait, at most so many seconds, until other processes do little. Returns the seconds waited."""
    began = time.monotonic()
    while time.monotonic() - began < patience and look() > QUIET:
        pass
    return time.monotonic() - began
