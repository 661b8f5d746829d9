"""Three databases, one worker process, and the server of one database is killed and comes back.

    python -m tests.torture.several [--messages 50000] [--down 4]

Every message is sent before the worker starts. A server is killed with SIGKILL when its database has handled a third of
its messages, and stays away for some seconds. Then the program counts: messages that were never handled, messages that
did not end, messages that were handled twice, and how fast the other two databases were meanwhile. Repeats are allowed
only in the database that was killed, and only for messages that were begun within one lease before its server died: a
settle does not wait for the disk.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded
from menzil.install import migrate
from tests.memory import MEMORY

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("shop", "crm", "mail")
KILLED = "mail"
CHANNEL = "orders"
LEASE = 5.0
PATIENCE = 300.0

#: The program of the worker: a line for each message, written by one call, so that no line is torn.
APP = """
import os, time, menzil
app = menzil.Worker(endpoints=False, lease={lease})
out = os.open({trace!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

@app.handler({channel!r})
async def handle(message):
    os.write(out, b"%.4f %s %d\\n" % (time.time(), message.database.encode(), message.id))
"""


@dataclass(frozen=True)
class Handled:
    """One line of the trace."""

    at: float
    database: str
    id: int


@dataclass
class Result:
    """What was counted."""

    messages: int
    lost: int
    unfinished: int
    repeats: dict[str, int]
    unexplained: int
    seconds: float
    rates: dict[str, tuple[float, float]]  # of the other two: alone with all three at work, and while one was away
    exit_code: int

    @property
    def ratio(self) -> float:
        """The worst of the rates of the other two, against their rate before."""
        return min(during / before for before, during in self.rates.values())

    def lines(self) -> Iterator[str]:
        """As people read it."""
        yield f"3 databases x {self.messages:,} messages, one worker process, {self.seconds:.1f} s; {KILLED} killed"
        yield f"never handled {self.lost}, not ended {self.unfinished}, exit code {self.exit_code}"
        repeats = ", ".join(f"{name} {count}" for name, count in self.repeats.items())
        yield f"handled twice: {repeats}; not explained by a lease {self.unexplained}"
        for name, (before, during) in self.rates.items():
            yield f"{name}: {before:,.0f}/s before, {during:,.0f}/s while {KILLED} was away: {during / before:.2f}"


@contextmanager
def server(place: Path) -> Iterator[Embedded]:
    """A server of its own with menzil in its first database."""
    running = Embedded(place, durable=False).start()
    try:
        migrate(running.dsn)
        yield running
    finally:
        running.close(wait=30)


def fill(dsn: str, messages: int) -> None:
    """Send so many messages."""
    payloads = "array(select to_jsonb(n) from generate_series(1, %s) n)"
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.set_setting('max_queue_size', '0')")
        conn.execute("select menzil.channel_set(%s)", (CHANNEL,))
        for first in range(0, messages, 10_000):
            conn.execute(f"select menzil.send_batch(%s, {payloads})", (CHANNEL, min(10_000, messages - first)))


def beside(running: Embedded, name: str) -> str:
    """Another database on a server, as the first one is."""
    with psycopg.connect(running.dsn, autocommit=True) as conn:
        conn.execute(f"create database {name}")
    dsn = make_conninfo(running.dsn, dbname=name)
    migrate(dsn)
    return dsn


def supervisor(running: Embedded) -> int:
    """The pid of the process that would start the server again at once."""
    assert running._home is not None
    return int(running._home.supervisor.read_text())


def read(trace: Path) -> list[Handled]:
    """What was handled so far."""
    if not trace.exists():
        return []
    lines = [line.split() for line in trace.read_text().splitlines()]
    return [Handled(float(at), name, int(id)) for at, name, id in lines]


def until(condition: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Poll until it is so."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"waited in vain: {what}"
        time.sleep(0.1)


def run(messages: int, down: float, others: Embedded | None = None) -> Result:
    """Send, work, kill, count. Databases that are not killed are made on the server `others`."""
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="mz-", dir=MEMORY, ignore_cleanup_errors=True)
        place = Path(stack.enter_context(made))
        place.chmod(0o755)
        victim = stack.enter_context(server(place / "victim"))
        others = others or stack.enter_context(server(place / "others"))
        dsns = {name: victim.dsn if name == KILLED else beside(others, name) for name in NAMES}
        for dsn in dsns.values():
            fill(dsn, messages)
        worker = Work(place, dsns)
        stack.callback(worker.end)
        until(lambda: worker.handled(KILLED) > messages // 3, "a third of the messages")
        watching = supervisor(victim)
        os.kill(watching, signal.SIGSTOP)
        try:
            os.kill(victim.pid, signal.SIGKILL)
            killed = time.time()
            time.sleep(down)
        finally:
            os.kill(watching, signal.SIGCONT)
        back = time.time()
        until(lambda: not any(map(_waiting, dsns.values())), "the end of all messages")
        code = worker.stop()
        print("".join(f"  {line}\n" for line in worker.log.read_text().splitlines()[:40]), flush=True)
        return count(messages, read(worker.trace), sum(map(_ended, dsns.values())), killed, back, code)


class Work:
    """The worker process, and what it wrote down."""

    def __init__(self, place: Path, dsns: dict[str, str]) -> None:
        self.trace, self.log, listed = place / "trace", place / "log", place / "databases"
        (place / "several_app.py").write_text(APP.format(lease=LEASE, trace=str(self.trace), channel=CHANNEL))
        listed.write_text("".join(f"{name} {dsn}\n" for name, dsn in dsns.items()))
        command = [sys.executable, "-m", "menzil", "worker", "several_app:app", "--dsn-file", str(listed)]
        path = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        with self.log.open("w") as log:
            self._process = subprocess.Popen(command, cwd=place, stderr=log, env={**os.environ, "PYTHONPATH": path})

    def handled(self, name: str) -> int:
        """How many messages of this database were handled so far."""
        return self.trace.read_bytes().count(f" {name} ".encode()) if self.trace.exists() else 0

    def stop(self) -> int:
        """Let it finish, and return its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(60)

    def end(self) -> None:
        """Kill it if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def count(messages: int, found: list[Handled], ended: int, killed: float, back: float, code: int) -> Result:
    """Compare what was handled with what was sent."""
    times: dict[tuple[str, int], list[float]] = {}
    for one in found:
        times.setdefault((one.database, one.id), []).append(one.at)
    again = {key: sorted(at) for key, at in times.items() if len(at) > 1}
    explained = [key for key, at in again.items() if key[0] == KILLED and killed - LEASE <= at[0] <= back + LEASE]
    start = max(min(one.at for one in found if one.database == name) for name in NAMES)
    rates = {}
    for name in (name for name in NAMES if name != KILLED):
        at = [one.at for one in found if one.database == name]
        ends = min(back, max(at))
        before = sum(start <= one < killed for one in at) / (killed - start)
        rates[name] = (before, sum(killed <= one < ends for one in at) / max(0.001, ends - killed))
    return Result(
        messages=messages,
        lost=messages * len(NAMES) - len(times),
        unfinished=messages * len(NAMES) - ended,
        repeats={name: Counter(key[0] for key in again)[name] for name in NAMES},
        unexplained=len(again) - len(explained),
        seconds=found[-1].at - found[0].at,
        rates=rates,
        exit_code=code,
    )


def _waiting(dsn: str) -> bool:
    with suppress(psycopg.OperationalError), psycopg.connect(dsn, autocommit=True, connect_timeout=2) as conn:
        row = conn.execute("select exists (select from menzil.queue)").fetchone()
        return row is None or bool(row[0])
    return True


def _ended(dsn: str) -> int:
    with psycopg.connect(dsn, autocommit=True) as conn:
        row = conn.execute("select count(*) from menzil.archive where status = 'completed'").fetchone()
        return 0 if row is None else int(row[0])


def main() -> int:
    """Run it, print what was counted, and say by the exit code whether a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--down", type=float, default=4.0)
    given = parser.parse_args()
    result = run(given.messages, given.down)
    print("\n".join(result.lines()))
    kept = not (result.lost or result.unfinished or result.unexplained or result.exit_code)
    return 0 if kept and result.ratio >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
