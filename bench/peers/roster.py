"""Who takes part: menzil, a queue of bare SQL, and what package registries have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.before import Before
from bench.peers.home import Home

OURS = "menzil"
LIMIT = "bare SQL"
DEFAULT, TUNED, TWO = "defaults", "tuned", "tuned, 2 processes"
HURRIED = "tuned, peers unsynced"
_WORKER = [sys.executable, "-m", "menzil", "worker", "bench.apps:nothing", "--once"]


@dataclass(frozen=True)
class Way:
    """One way to drain: the words after the player's command, or a command of its own."""

    words: tuple[str, ...]
    share: float = 1.0  # of the messages; less for those who would take too long
    processes: int = 1
    command: tuple[str, ...] = ()
    hurried: bool = False  # nothing it commits waits for the disk


@dataclass(frozen=True)
class Peer:
    """One entrant; its command may say that it cannot be had."""

    name: str
    command: Callable[[], list[str]]
    left: str  # SQL: how many messages are not ended
    ways: dict[str, Way] = field(default_factory=dict)
    awake: bool = True  # it has a worker that waits for messages
    before: Before | None = None  # it is menzil 0.1.0


def ways(
    default: float | None = 1.0, tuned: float = 1.0, *, two: bool = False, hurried: bool = False
) -> dict[str, Way]:
    """The usual ways, with the share of the messages each can take."""
    found = {DEFAULT: Way(("drain", "default"), default)} if default else {}
    found[TUNED] = Way(("drain", "tuned"), tuned)
    if two:
        found[TWO] = Way(("drain", "tuned"), tuned, processes=2)
    if hurried:
        found[HURRIED] = Way(("drain", "tuned"), tuned, hurried=True)
    return found


def roster(home: Home) -> list[Peer]:
    """All of them; nothing is installed before it is asked for."""

    def ours(module: str) -> Callable[[], list[str]]:
        return lambda: [sys.executable, "-m", f"bench.peers.play_{module}"]

    def python(module: str, *packages: str) -> Callable[[], list[str]]:
        return lambda: [str(home.python(*packages)), "-m", f"bench.peers.play_{module}"]

    def node(package: str, script: str) -> Callable[[], list[str]]:
        return lambda: ["node", str(home.node(package, script))]

    tuned = (*_WORKER, "--concurrency", "500", "--batch", "1000")
    menzil = {
        DEFAULT: Way((), command=tuple(_WORKER)),
        TUNED: Way((), command=tuned),
        TWO: Way((), command=tuned, processes=2),
    }
    return [
        Peer(OURS, ours("menzil"), "select count(*) from menzil.queue", menzil),
        Peer(
            "graphile-worker",
            node("graphile-worker", "graphile.mjs"),
            "select count(*) from graphile_worker._private_jobs",
            ways(0.05, two=True, hurried=True),
        ),
        Peer(
            "pgmq",
            python("pgmq", "pgmq"),
            "select count(*) from pgmq.q_nothing",
            ways(0.03, two=True, hurried=True),
        ),
        Peer(
            "pgqueuer",
            python("pgqueuer", "pgqueuer[asyncpg]", "uvloop"),
            "select count(*) from pgqueuer",
            ways(0.05, 0.5, two=True, hurried=True),
        ),
        Peer(
            "pg-boss",
            node("pg-boss", "pgboss.mjs"),
            "select count(*) from pgboss.job where name = 'nothing' and state <> 'completed'",
            ways(0.001, 0.5),
        ),
        Peer(
            "procrastinate",
            python("procrastinate", "procrastinate", "psycopg[binary]", "uvloop"),
            "select count(*) from procrastinate_jobs where status <> 'succeeded'",
            ways(0.005, 0.01),
        ),
        Peer(LIMIT, ours("bare"), "select count(*) from bare_queue", ways(None), awake=False),
    ]
