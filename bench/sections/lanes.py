"""Very many channels with one message each: every message is a turn of its own. Beside 0.1.0."""

from __future__ import annotations

import random
from collections.abc import Callable

from bench import fill, kinds
from bench.buffers import Cost, cost
from bench.server import connected
from bench.session import NEW, OLD, Session
from bench.turns import Conn, Side, backend_cpu, compete, connection, settings

CHANNELS = {False: 100_000, True: 20_000}
TURNS = {False: 12, True: 8}
STEPS = 5
SIZE = 100

_SENDS = "select count(menzil.send('c' || n, %s::jsonb)) from unnest(%s::integer[]) n"


def run(session: Session) -> None:
    """Fill both databases, fold the log, count pages, then let both take turns."""
    count = CHANNELS[session.quick]
    costs: dict[str, Cost] = {}
    folds: dict[str, float] = {}
    conns: dict[str, Conn] = {}
    with settings(session.server, fsync="off"):
        for name, root in session.versions().items():
            dsn = session.server.database(root)
            with connected(dsn) as conn:
                session.say(f"{name}: makes {count:,} channels and sends one message to each")
                fill.channels(conn, count)
                fill.spread(conn, 0, count, count)
                spent = backend_cpu(conn)
                fill.settle(conn)
                folds[name] = (backend_cpu(conn) - spent) / count
                costs[name] = each = cost(conn, size=SIZE)
                session.say(
                    f"{name}: fold {folds[name]:.1f} µs; dequeue {each.dequeue:.1f}, complete {each.complete:.1f} "
                    "pages per message"
                )
            conns[name] = connection(dsn)
        drains = {name: Side(conn, lambda conn=conn: kinds.take(conn, SIZE)) for name, conn in conns.items()}  # type: ignore[misc]
        compete(drains, STEPS, TURNS[session.quick])
        churns = {name: Side(conn, churn(conn, count)) for name, conn in conns.items()}
        compete(churns, STEPS, TURNS[session.quick])
        for conn in conns.values():
            conn.close()
    conclude(session, count, costs, folds, {"lease and complete": drains, "life of single sends": churns})


def conclude(
    session: Session,
    count: int,
    costs: dict[str, Cost],
    folds: dict[str, float],
    found: dict[str, dict[str, Side]],
) -> None:
    """Pages, then processor time."""
    title = f"{count:,} channels with one message each"
    beside = {name: [each.total] for name, each in costs.items()}
    session.figure(f"pages to lease and complete, {title}", [costs[NEW].total], at_most=22, unit="", beside=beside)
    if OLD not in costs:
        return
    company = {"µs": [folds[NEW]], "µs 0.1.0": [folds[OLD]]}
    session.figure(f"fold of the log, {title}, server CPU / 0.1.0", [folds[NEW] / folds[OLD]], beside=company)
    for name, sides in found.items():
        new, old = sides[NEW].lowest, sides[OLD].lowest
        company = {"µs": [new], "µs 0.1.0": [old]}
        target = 0.9 if name == "lease and complete" else None
        session.figure(f"{name}, {title}, server CPU / 0.1.0", [new / old], at_most=target, beside=company)


def churn(conn: Conn, count: int) -> Callable[[], int]:
    """Single sends to channels chosen by chance, and as many messages taken."""
    chance = random.Random(2)

    def step() -> int:
        conn.execute(_SENDS, (kinds.BODY, [chance.randrange(count) for _ in range(SIZE)]))
        return kinds.take(conn, SIZE)

    return step
