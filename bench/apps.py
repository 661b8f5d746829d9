"""Workers to be measured, for `menzil worker bench.apps:NAME`."""

from __future__ import annotations

import atexit
import json
import os
import socket
import time

from bench.server import CHANNEL
from menzil import Worker
from menzil.model.message import Message

SOCKET = "BENCH_SOCKET"  # the variable that says where `stamp` tells of arrivals

nothing = Worker()
stamp = Worker()
_began: tuple[float, float] | None = None
_handled = 0
_told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


@nothing.handler(CHANNEL)
async def count(_: Message) -> None:
    """Do nothing but count."""
    global _began, _handled
    if _began is None:
        _began = time.monotonic(), time.process_time()
    _handled += 1


@atexit.register
def tell() -> None:
    """At the end, how long it took: the line that `bench.peers.contest` reads."""
    if _began is not None:
        facts = {"began": _began[0], "ended": time.monotonic(), "cpu": time.process_time() - _began[1]}
        print(json.dumps({**facts, "handled": _handled}), flush=True)


@stamp.handler(CHANNEL)
async def arrive(_: Message) -> None:
    """Tell when it arrived, by the clock that all processes share."""
    _told.sendto(str(time.monotonic_ns()).encode(), os.environ[SOCKET])
