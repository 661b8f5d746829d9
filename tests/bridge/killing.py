"""Runs `menzil bridge run` in a process of its own and kills it at random moments until all records are taken."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass

import psycopg

from tests.bridge.stage import one


@dataclass
class Outcome:
    """What a run with kills showed."""

    records: int
    kills: int
    seconds: float
    missing: int
    twice: int


def start(db: str, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "menzil", "bridge", "run", name]
    return subprocess.Popen(command, env={**os.environ, "MENZIL_DSN": db}, stderr=subprocess.DEVNULL)


def taken(conn: psycopg.Connection) -> int:
    found: int = one(conn, "select coalesce(sum(taken), 0) from menzil.bridge_positions")
    return found


def killed(
    db: str, conn: psycopg.Connection, name: str, records: int, kills: int, seed: int, patience: float
) -> Outcome:
    """Take `records`, whose payloads are the numbers from 0 on, through so many kills spread over all of them."""
    chance = random.Random(seed)
    # Each kill comes when about this many are taken, in the middle of whatever goes on then. None comes near the end:
    # this process may not run for as long as the bridge needs for the rest.
    moments = sorted(chance.randrange(records * 2 // 3) for _ in range(kills))
    began, done = time.monotonic(), 0
    process = start(db, name)
    try:
        while (count := taken(conn)) < records:
            assert time.monotonic() < began + patience, f"{count} of {records} after {done} kills"
            if moments and count >= moments[0]:
                moments.pop(0)
                time.sleep(chance.uniform(0, 0.05))  # not at the end of a batch: anywhere
                process.send_signal(signal.SIGKILL)
                process.wait()
                done += 1
                process = start(db, name)
            time.sleep(0.005)
        seconds = time.monotonic() - began
    finally:
        process.kill()
        process.wait()
    found = Counter(row[0] for row in conn.execute("select payload::text::integer from menzil.queue"))
    missing = sum(number not in found for number in range(records))
    return Outcome(records, done, seconds, missing, sum(n - 1 for n in found.values() if n > 1))
