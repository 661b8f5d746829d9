"""This tree beside another commit of the git history, by processor time: `python -m bench --beside COMMIT`.

Send by the client, lease and complete by SQL, and HTTP delivery by a worker. Both sides take short turns on one server,
each in databases of its own and with its own Python. The lower quartile of the turns counts: on a busy machine a single
lowest turn is chance. A ratio above 1 is dearer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from statistics import median

from bench import kinds
from bench.before import ROOT, Before
from bench.receiver import Receiver
from bench.sections.calls import top_up
from bench.sections.deliver import WAYS, deliver, prepare
from bench.server import CHANNEL
from bench.session import Session
from bench.turns import Conn, Side, compete, connection, settings

THIS, THAT = "this", "that"
MOST = 1.03
TURNS = {False: 60, True: 12}
PROCESSES = {False: 24, True: 6}  # each sends SENDS messages
SENDS = 3_000
BACKLOGS = {False: 12, True: 3}
MESSAGES = {False: 6_000, True: 1_500}

#: One client that sends one message a commit; what it used of the processor, and its server process.
_CLIENT = """
import json, sys, time, menzil, psycopg
from pathlib import Path
dsn, channel, count, body = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
with menzil.Menzil(dsn, max_connections=1) as mq:
    for _ in range(200):
        mq.send(channel, body)
    with psycopg.connect(dsn, autocommit=True) as conn:
        text = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        ((pid,),) = conn.execute(text + " and backend_type = 'client backend'").fetchall()
    def spent():
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e3, time.process_time() * 1e6
    before = spent()
    for _ in range(count):
        mq.send(channel, body)
    print(json.dumps([(now - then) / count for now, then in zip(spent(), before)]))
"""


def run(session: Session) -> None:
    """Every kind of work in turn."""
    if session.beside is None:
        session.say("needs --beside COMMIT")
        return
    that = session.beside
    dsns = {THIS: session.server.database(), THAT: session.server.database(that.sql)}
    with settings(session.server, fsync="off"):  # what a commit costs is the same for both
        sends(session, dsns, that)
        calls(session, dsns)
        deliveries(session, that)


def sends(session: Session, dsns: dict[str, str], that: Before) -> None:
    """One message, one commit, by the Python client of each side."""
    seen: dict[str, list[float]] = {THIS: [], THAT: []}
    server: dict[str, list[float]] = {THIS: [], THAT: []}
    for number in range(PROCESSES[session.quick] + 1):
        for name in dsns if number % 2 else reversed(dsns):
            before = that if name == THAT else None
            words = [sys.executable, "-c", _CLIENT, dsns[name], CHANNEL, str(SENDS), kinds.BODY]
            variables = os.environ | (before.environment if before else {})
            place = before.tree if before else ROOT
            done = subprocess.run(words, cwd=place, env=variables, capture_output=True, text=True, check=True)
            cost = json.loads(done.stdout)
            if number:  # the first one fills caches
                server[name].append(cost[0])
                seen[name].append(sum(cost))
    tell(session, "send by the client, server and client", seen)
    tell(session, "send by the client, server", server)


def calls(session: Session, dsns: dict[str, str]) -> None:
    """Lease and complete by SQL, in two calls and in one, and a batch of sends."""
    conns = {name: connection(dsn) for name, dsn in dsns.items()}
    turns = TURNS[session.quick]
    try:
        sides = {name: Side(conn, _batch(conn)) for name, conn in conns.items()}
        compete(sides, 1, turns)
        tell(session, "send_batch of 1,000, server", {name: side.server for name, side in sides.items()})
        for size, steps in ((100, 10), (1, 60)):
            for what in ("two calls", "message_next"):
                for conn in conns.values():
                    top_up(conn, size * steps * (turns + 2))
                sides = {name: Side(conn, _drain(conn, size, what)) for name, conn in conns.items()}
                compete(sides, steps, turns)
                both = {name: [a + b for a, b in zip(s.server, s.client, strict=True)] for name, s in sides.items()}
                tell(session, f"lease and complete {size}, {what}, server and client", both)
                for conn in conns.values():
                    while kinds.take(conn, 1_000):
                        pass
    finally:
        for conn in conns.values():
            conn.close()


def _batch(conn: Conn) -> Callable[[], int]:
    def step() -> int:
        kinds.send(conn, kinds.PLAIN, 1_000)
        return 1_000

    return step


def _drain(conn: Conn, size: int, what: str) -> Callable[[], int]:
    return kinds.following(conn, size) if what == "message_next" else lambda: kinds.take(conn, size)


def deliveries(session: Session, that: Before) -> None:
    """A backlog over HTTP by one worker of each side."""
    seen: dict[str, list[float]] = {THIS: [], THAT: []}
    worker: dict[str, list[float]] = {THIS: [], THAT: []}
    with Receiver() as receiver:
        dsns = {THIS: session.server.database(), THAT: session.server.database(that.sql)}
        for dsn in dsns.values():
            prepare(dsn, receiver.url)
        for number in range(BACKLOGS[session.quick] + 1):
            for name in dsns if number % 2 else reversed(dsns):
                before = that if name == THAT else None
                found = deliver(dsns[name], receiver, MESSAGES[session.quick], WAYS[0], before)
                if number:
                    seen[name].append(found.worker + found.server)
                    worker[name].append(found.worker)
    tell(session, "HTTP delivery by one worker, worker and server", seen)
    tell(session, "HTTP delivery by one worker, worker", worker)


def tell(session: Session, what: str, costs: dict[str, list[float]]) -> None:
    """The ratio of the lower quartiles, with others beside it."""
    low = {name: sorted(each)[len(each) // 4] for name, each in costs.items()}
    pairs = [one / other for one, other in zip(costs[THIS], costs[THAT], strict=True)]
    company = {
        "µs": [low[THIS]],
        "µs before": [low[THAT]],
        "lowest": [min(costs[THIS]) / min(costs[THAT])],
        "median of pairs": [median(pairs)],
        "medians": [median(costs[THIS]) / median(costs[THAT])],
    }
    session.figure(f"{what}, CPU", [low[THIS] / low[THAT]], at_most=MOST, beside=company)
