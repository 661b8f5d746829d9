"""Who drains a backlog of messages that need nothing done?

Each entrant is a process of its own, timed from its first message until it has ended the last one and stopped. Its last
line says how long that took, its processor time, and how many messages it handled; the database says what it left.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from psycopg.conninfo import conninfo_to_dict

from bench import machine, usage
from bench.readings import Reading
from bench.server import connected
from bench.service import ROOT

_VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
PATIENCE = 300
FEWEST = 100


class ContestError(Exception):
    """An entrant failed, or did not do all of it."""


@dataclass(frozen=True)
class Entrant:
    """Somebody who drains."""

    name: str
    fill: Callable[[str, int], None]
    drain: Callable[[str], list[str]]  # the command
    left: str  # SQL: how many are not ended
    share: float = 1.0  # of the messages; less for those who would take too long
    hurried: bool = False  # nothing it commits waits for the disk


@dataclass(frozen=True)
class Run:
    """How it went: the reading, microseconds of it in the entrant's process, and what others used of the machine."""

    reading: Reading
    own: float
    others: float


def measure(entrant: Entrant, dsn: str, count: int) -> Run:
    """Fill and drain once."""
    count = max(FEWEST, int(count * entrant.share))
    entrant.fill(dsn, count)
    with connected(dsn) as conn:
        # Nobody is to pay for what filling left to do, or for the checkpoint of somebody else.
        conn.execute("vacuum analyze")
        conn.execute("checkpoint")
        server = usage.server_process(conn)
        before, times, children = usage.cpu(server), machine.times(), _children()
        told = json.loads(run(entrant.drain(dsn), dsn, hurried=entrant.hurried).strip().splitlines()[-1])
        spent = usage.cpu(server) - before
        others = machine.others(times, spent + _children() - children)
        left = conn.execute(entrant.left).fetchone()
    if left != (0,) or told["handled"] != count:
        raise ContestError(f"{entrant.name} handled {told['handled']} of {count} messages and left {left}.")
    own = told["cpu"] / count * 1e6
    return Run(Reading(count / told["seconds"], own + spent / count * 1e6), own, others)


def run(command: list[str], dsn: str, *, hurried: bool = False) -> str:
    """Run a process of an entrant to its end; what it wrote."""
    parts = conninfo_to_dict(dsn)
    environment = {variable: str(parts[name]) for name, variable in _VARIABLES.items() if name in parts}
    if hurried:
        environment["PGOPTIONS"] = "-c synchronous_commit=off"
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise ContestError(f"{' '.join(command)}:\n{done.stderr[-2000:]}")
    return done.stdout


def _children() -> float:
    """Processor seconds of processes that we started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
