"""Does a worker grow? Resident memory of one process over a long backlog, of HTTP deliveries and of a no-op handler."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import mean

from bench import fill, usage
from bench.receiver import Receiver
from bench.sections import deliver
from bench.server import CHANNEL, connected
from bench.service import Service
from bench.session import Session

MESSAGES = {False: 200_000, True: 10_000}
EVERY = 0.05  # seconds between two looks
LIMIT = 1.05


def run(session: Session) -> None:
    """One long run each: what grows shows in its second half."""
    count = MESSAGES[session.quick]
    for what, measure in (("HTTP deliveries", over_http), ("no-op messages", by_handler)):
        sizes, seconds = measure(session.server.database(), count)
        beside = {
            "second fifth MB": [fifth(sizes, 1)],
            "last fifth MB": [fifth(sizes, 4)],
            "highest MB": [max(sizes)],
            "messages/s": [count / seconds],
        }
        growth = fifth(sizes, 4) / fifth(sizes, 1)
        session.figure(
            f"memory of a worker, last / second fifth of {count:,} {what}", [growth], at_most=LIMIT, beside=beside
        )


def fifth(sizes: list[float], place: int) -> float:
    """The mean of one fifth of the run."""
    length = len(sizes) // 5
    return mean(sizes[place * length : (place + 1) * length])


def over_http(dsn: str, count: int) -> tuple[list[float], float]:
    """Deliver a backlog to the receiver."""
    with Receiver() as receiver, connected(dsn) as conn:
        deliver.prepare(dsn, receiver.url)
        deliver.pause(conn, "pause")
        fill.exactly(conn, deliver.ENDPOINTS, count)
        with Service(dsn) as worker:
            deliver.pause(conn, "resume")
            return watch(worker, lambda: count - receiver.count)


def by_handler(dsn: str, count: int) -> tuple[list[float], float]:
    """Handle a backlog."""
    with connected(dsn) as conn:
        conn.execute("select menzil.channel_pause(%s)", (CHANNEL,))
        fill.exactly(conn, [CHANNEL], count)
        with Service(dsn, app="bench.apps:nothing") as worker:
            conn.execute("select menzil.channel_resume(%s)", (CHANNEL,))
            return watch(worker, lambda: _left(conn))


def _left(conn: fill.Conn) -> int:
    row = conn.execute("select count(*) from (select from menzil.queue limit 1) q").fetchone()
    return row[0] if row else 0


def watch(worker: Service, left: Callable[[], int]) -> tuple[list[float], float]:
    """Megabytes, look by look, until nothing is left; and the seconds that took."""
    sizes: list[float] = []
    began = time.monotonic()
    while True:
        sizes.append(usage.megabytes(worker.pid))
        if not sizes[-1]:
            raise RuntimeError(f"The worker is gone:\n{worker.said()[-2000:]}")
        if not left():
            return sizes, time.monotonic() - began
        time.sleep(EVERY)
