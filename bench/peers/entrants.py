"""The entrants of the contest: menzil's worker, pgmq's shape, and what package registries have."""

from __future__ import annotations

import sys
from dataclasses import replace

from bench import fill
from bench.payloads import array_literal, small
from bench.peers import pgmq_shape
from bench.peers.contest import Entrant, run
from bench.peers.home import HERE, Home
from bench.server import CHANNEL, connected

BODIES = 5000  # different payloads


def menzil(name: str, *options: str) -> Entrant:
    """`menzil worker --once` with these options."""
    command = [sys.executable, "-m", "menzil", "worker", "bench.apps:nothing", "--once", *options]

    def fill_it(dsn: str, count: int) -> None:
        with connected(dsn) as conn:
            fill.exactly(conn, [CHANNEL], count, [small(number) for number in range(BODIES)])

    return Entrant(name, fill_it, lambda dsn: [*command, "--dsn", dsn], "select count(*) from menzil.queue")


def pgmq(end: str) -> Entrant:
    """pgmq's shape, messages deleted or archived at the end."""
    command = [sys.executable, "-m", "bench.peers.pgmq_shape", end]

    def fill_it(dsn: str, count: int) -> None:
        bodies = [small(number) for number in range(BODIES)]
        with connected(dsn) as conn:
            conn.execute(pgmq_shape.TABLES)
            for first in range(0, count, BODIES):
                conn.execute(pgmq_shape.FILL, (array_literal(bodies[: count - first]),))

    return Entrant(f"pgmq's shape, {end}", fill_it, lambda _: command, pgmq_shape.LEFT)


def pgqueuer(home: Home) -> Entrant:
    """From PyPI."""
    return _by_python(home, "pgqueuer", "select count(*) from pgqueuer")


def procrastinate(home: Home) -> Entrant:
    """From PyPI; takes its jobs one by one."""
    left = "select count(*) from procrastinate_jobs where status <> 'succeeded'"
    return replace(_by_python(home, "procrastinate", left), share=0.02)


def graphile_worker(home: Home) -> Entrant:
    """From npm."""

    def fill_it(dsn: str, count: int) -> None:
        run(["node", str(home.node()), "fill", str(count)], dsn)

    left = "select count(*) from graphile_worker._private_jobs"
    return Entrant("graphile-worker", fill_it, lambda _: ["node", str(home.node()), "drain"], left)


def hurried(entrant: Entrant) -> Entrant:
    """The same, but nothing it commits waits for the disk: it may lose messages that it took and ended."""
    return replace(entrant, name=f"{entrant.name}, synchronous_commit off", hurried=True)


def _by_python(home: Home, name: str, left: str) -> Entrant:
    script = str(HERE / f"{name}_drain.py")

    def fill_it(dsn: str, count: int) -> None:
        run([str(home.python()), script, "fill", str(count)], dsn)

    return Entrant(name, fill_it, lambda _: [str(home.python()), script, "drain"], left)
