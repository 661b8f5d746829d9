"""Senders of the load lab: loads for the crew, through menzil's own client."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench.crew import Step
from bench.load.arrivals import ENTRY
from bench.loads.connections import client
from bench.server import CHANNEL

NOTE = "x" * 100
SOME = 10  # messages of a small batch
AHEAD = 2_000  # messages that may wait


def body() -> dict[str, Any]:
    return {"at": time.monotonic_ns(), "note": NOTE}


def free(dsn: str, **_: object) -> Step:
    """As fast as it goes: nine single sends, then a small batch."""
    menzil = client(dsn)

    def step() -> int:
        for _ in range(9):
            menzil.send(CHANNEL, body())
        return 9 + len(menzil.send_batch(CHANNEL, [body() for _ in range(SOME)]))

    return step


def paced(dsn: str, worker: int, rate: float) -> Step:
    """The same at so many messages per second: a sender that is late sends at once until it is not."""
    menzil = client(dsn)
    due = time.monotonic() + worker * 0.01

    def step() -> int:
        nonlocal due
        for number in range(10):
            time.sleep(max(0.0, due - time.monotonic()))
            if number < 9:
                menzil.send(CHANNEL, body())
                due += 1 / rate
            else:
                menzil.send_batch(CHANNEL, [body() for _ in range(SOME)])
                due += SOME / rate
        return 9 + SOME

    return step


def pushing(dsn: str, arrivals: str, size: int, **_: object) -> Step:
    """Batches, as long as not too many wait: the workers decide how fast it goes."""
    menzil, file = client(dsn), Path(arrivals)
    sent = file.stat().st_size // ENTRY.size  # between two slices nothing waits

    def step() -> int:
        nonlocal sent
        if sent - file.stat().st_size // ENTRY.size >= AHEAD:
            time.sleep(0.001)
            return 1  # it found something to do: waiting
        sent += len(menzil.send_batch(CHANNEL, [body() for _ in range(size)]))
        return 1

    return step
