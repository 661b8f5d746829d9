"""From an idle worker to the first line of its handler: woken by NOTIFY, by polling alone, and behind PgBouncer."""

from __future__ import annotations

import random
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import psycopg

from bench import bouncer
from bench.apps import SOCKET
from bench.payloads import text
from bench.server import CHANNEL
from bench.service import Service
from bench.session import Session

MESSAGES = {False: 40, True: 4}  # of each repeat
PAUSE = 0.2, 0.3  # seconds between two messages
WARM_UP = 3
NOTIFIED, POLLING, POOLED = "NOTIFY", "polling alone", "behind PgBouncer, polling alone"
OPTIONS = {NOTIFIED: (), POLLING: ("--no-listen",), POOLED: ("--no-listen", "--no-prepare")}
TARGETS = {NOTIFIED: 20.0}  # milliseconds


def run(session: Session) -> None:
    """Each way in turn; the same worker is idle most of the time."""
    ways = [way for way in OPTIONS if way != POOLED or bouncer.PATH]
    if POOLED not in ways:
        session.say("PgBouncer is not installed: that way is left out")
    found: dict[str, list[list[float]]] = {way: [] for way in ways}
    hints: list[float] = []
    dsn = session.server.database()
    for repeat in session.repeat():
        hints.append(median(bare(dsn, MESSAGES[session.quick])))
        for way in ways if repeat % 2 else reversed(ways):
            found[way].append(measure(dsn, way, MESSAGES[session.quick]))
            session.say(f"{way}: {median(found[way][-1]):.1f} ms")
    for way in ways:
        medians = [median(each) for each in found[way]]
        together = [one for each in found[way] for one in each]
        company = {
            "p99": [quantiles(together, n=100, method="inclusive")[98]],
            "longest": [max(together)],
            "bare NOTIFY": hints,
        }
        name = f"idle to handler, {way}, p50 of {len(together)}"
        session.figure(name, medians, at_most=TARGETS.get(way), unit="ms", beside=company)


def measure(dsn: str, way: str, count: int) -> list[float]:
    """Milliseconds from just before the commit of a send to the handler, message by message."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mz-"))) / "arrived"
        arrivals = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        arrivals.bind(str(place))
        arrivals.settimeout(30)
        through = stack.enter_context(bouncer.pooled(dsn)) if way == POOLED else dsn
        worker = Service(through, *OPTIONS[way], app="bench.apps:stamp", environment={SOCKET: str(place)})
        stack.enter_context(worker)
        conn = stack.enter_context(psycopg.connect(dsn))
        found = [one(conn, arrivals) for _ in range(WARM_UP + count)]
    return found[WARM_UP:]


def one(conn: psycopg.Connection[Any], arrivals: socket.socket) -> float:
    """Send when all is quiet, wait for the arrival."""
    time.sleep(random.uniform(*PAUSE))
    conn.execute("select menzil.send(%s, %s::jsonb)", (CHANNEL, text(0)))
    sent = time.monotonic_ns()
    conn.commit()
    return (int(arrivals.recv(100)) - sent) / 1e6


def bare(dsn: str, count: int) -> list[float]:
    """The limit: milliseconds from the commit of a NOTIFY to a session that waits for it, without a queue."""
    found = []
    with psycopg.connect(dsn, autocommit=True) as listening, psycopg.connect(dsn) as conn:
        listening.execute("listen bench")
        for _ in range(count):
            conn.execute("insert into bare (payload) values (%s::jsonb)", (text(0),))
            conn.execute("notify bench")
            sent = time.monotonic_ns()
            conn.commit()
            list(listening.notifies(timeout=10, stop_after=1))
            found.append((time.monotonic_ns() - sent) / 1e6)
    return found
