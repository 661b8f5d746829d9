"""What half a million archived messages leave behind, beside 0.1.0: disk, work for VACUUM, and what readers pay."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from bench import kinds
from bench.counts import sizes
from bench.kinds import PLAIN
from bench.session import NEW, OLD, Session
from bench.turns import Conn, Side, backend_cpu, compete, connection, settings

LIVES = {False: 500_000, True: 100_000}
TURNS = {False: 8, True: 5}
SIZE = 100
SLICES = 10  # parts in which the whole feed is read
IDLE_ROUNDS = 3  # the lowest counts, because a round that finds nothing to do is short

_TABLES = """
select c.oid::regclass::text from pg_class c
where c.relnamespace = 'menzil'::regnamespace and c.relkind = 'r' order by 1"""
_FEED = {
    NEW: "select * from menzil.feed_between('{0}', '{1}')",
    OLD: "select * from menzil.archive where ended_xid >= '{0}' and ended_xid < '{1}' order by ended_xid, id",
}
_MONTH = "select * from menzil.archive_between(now() - interval '1 month', now() + interval '1 month')"
_PLAIN = "select * from plain_archive"


@dataclass
class Past:
    """A database with its history."""

    name: str
    conn: Conn
    first: int = 0  # transactions
    last: int = 0
    ids: list[int] = field(default_factory=list)
    life: float = 0.0  # microseconds of server CPU per message
    vacuum: float = 0.0
    idle: float = 0.0  # a VACUUM that finds nothing to do
    disk: float = 0.0  # bytes per message after VACUUM


def run(session: Session) -> None:
    """Both databases are filled; then readers take turns."""
    with settings(session.server, fsync="off", autovacuum="off"):
        pasts = {
            name: Past(name, connection(session.server.database(root))) for name, root in session.versions().items()
        }
        for past in pasts.values():
            live(session, past)
            clean(session, past)
        conclude(session, pasts)
        turns = TURNS[session.quick]
        statuses(session, {name: Side(past.conn, status(past)) for name, past in pasts.items()}, turns)
        feeds(session, {name: Side(past.conn, feed(past)) for name, past in pasts.items()}, turns)
        month(session, pasts[NEW], turns)
        for past in pasts.values():
            past.conn.close()


def live(session: Session, past: Past) -> None:
    """Send, lease and complete, a hundred at a time. What the installation left for VACUUM is cleaned up before."""
    conn, count = past.conn, LIVES[session.quick]
    vacuum(conn)
    past.first = _xid(conn)
    spent = backend_cpu(conn)
    kinds.lives(conn, PLAIN, SIZE, count // SIZE)
    past.life = (backend_cpu(conn) - spent) / count
    past.last = _xid(conn) + 1
    row = conn.execute("select min(id), max(id) from menzil.archive").fetchone()
    assert row is not None
    chance = random.Random(1)
    past.ids = [chance.randrange(row[0], row[1]) for _ in range(100)]


def clean(session: Session, past: Past) -> None:
    """VACUUM of all tables, then their size. Further rounds with nothing to do show what VACUUM itself costs."""
    conn, count = past.conn, LIVES[session.quick]
    found = sum(sizes(conn).values()) / count
    rounds = [vacuum(conn) / count for _ in range(1 + IDLE_ROUNDS)]
    past.vacuum, past.idle = rounds[0], min(rounds[1:])
    left = sizes(conn)
    past.disk = sum(left.values()) / count
    conn.execute("analyze")
    largest = ", ".join(f"{name} {size / count:.0f}" for name, size in list(left.items())[:4])
    session.say(
        f"{past.name}: a life {past.life:.1f} µs, {found:.0f} B before VACUUM, VACUUM {past.vacuum:.3f} µs, "
        f"again {past.idle:.3f}, "
        f"then {past.disk:.0f} B: {largest}"
    )


def vacuum(conn: Conn) -> float:
    """VACUUM every table; return the microseconds of server CPU."""
    tables = [row[0] for row in conn.execute(_TABLES)]
    spent = backend_cpu(conn)
    for table in tables:
        conn.execute(f"vacuum (parallel 0) {table}")
    return backend_cpu(conn) - spent


def conclude(session: Session, pasts: dict[str, Past]) -> None:
    """What needs no turns."""
    new, old = pasts[NEW], pasts.get(OLD)
    disk = {"0.1.0": [old.disk]} if old else {}
    session.figure("disk of an archived message of 200 B", [new.disk], at_most=330, unit="B", beside=disk)
    if old:
        ratio = vacuum_ratio(new, old)
        company = {"µs": [new.vacuum], "µs 0.1.0": [old.vacuum], "idle µs": [new.idle], "idle µs 0.1.0": [old.idle]}
        name = f"VACUUM after {LIVES[session.quick]:,} lives, less an idle VACUUM, CPU / 0.1.0"
        if ratio is None:
            session.say(f"{name}: too few lives, an idle VACUUM cost as much")
        else:
            session.figure(name, [ratio], at_most=0.25, beside=company)
        company = {"µs": [new.life], "µs 0.1.0": [old.life]}
        name = f"send_batch, lease and complete {SIZE}, server CPU / 0.1.0"
        session.figure(name, [new.life / old.life], beside=company)


def vacuum_ratio(new: Past, old: Past) -> float | None:
    """None if an idle VACUUM cost as much as the first one: then the difference is the machine's noise."""
    work = new.vacuum - new.idle, old.vacuum - old.idle
    return work[0] / work[1] if min(work) > 0 else None


def statuses(session: Session, sides: dict[str, Side], turns: int) -> None:
    """One message at a time."""
    compete(sides, 1, turns)
    if OLD in sides:
        new, old = sides[NEW].lowest, sides[OLD].lowest
        company = {"µs": [new], "µs 0.1.0": [old]}
        session.figure("status by id, server CPU / 0.1.0", [new / old], at_most=1.0, beside=company)


def status(past: Past) -> Callable[[], int]:
    def step() -> int:
        for number in past.ids:
            past.conn.execute("select * from menzil.message_status(%s)", (number,)).fetchall()
        return len(past.ids)

    return step


def feeds(session: Session, sides: dict[str, Side], turns: int) -> None:
    """The whole feed in order, all columns, in a few slices."""
    compete(sides, 1, turns)
    if OLD in sides:
        new, old = sides[NEW].lowest, sides[OLD].lowest
        company = {"µs a row": [new], "µs 0.1.0": [old]}
        session.figure("feed, rows per server CPU second / 0.1.0", [old / new], at_least=0.8, beside=company)


def feed(past: Past) -> Callable[[], int]:
    marks = [past.first + (past.last - past.first) * number // SLICES for number in range(SLICES + 1)]
    sql = [_FEED[past.name].format(low, high) for low, high in pairwise(marks)]

    def step() -> int:
        return sum(_read(past.conn, one) for one in sql)

    return step


def month(session: Session, past: Past, turns: int) -> None:
    """All columns of a month, beside the same rows in a plain table."""
    conn = past.conn
    conn.execute("create table plain_archive as select * from menzil.archive")
    conn.execute("vacuum analyze plain_archive")
    conn.execute("set enable_seqscan = on")
    sides = {name: Side(conn, lambda sql=sql: _read(conn, sql)) for name, sql in (("month", _MONTH), ("plain", _PLAIN))}  # type: ignore[misc]
    compete(sides, 1, turns)
    ours, plain = sides["month"].lowest, sides["plain"].lowest
    company = {"µs a row": [ours], "µs plain table": [plain]}
    session.figure(
        "month of the archive / plain table, rows per CPU second", [plain / ours], at_least=0.6, beside=company
    )


def _read(conn: Conn, sql: str) -> int:
    """COPY the rows of a query to nowhere; how many there were."""
    with conn.cursor() as cursor:
        with cursor.copy(f"copy ({sql}) to stdout (format binary)") as blocks:
            for _ in blocks:
                pass
        return cursor.rowcount


def _xid(conn: Conn) -> int:
    row = conn.execute("select pg_current_xact_id()::text").fetchone()
    assert row is not None
    return int(row[0])
