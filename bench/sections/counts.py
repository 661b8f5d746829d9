"""What a message costs in bytes of log, rows and pages over its whole life, beside 0.1.0 and beside a bare table."""

from __future__ import annotations

from bench import kinds
from bench.buffers import cost
from bench.counts import Count, counted
from bench.kinds import KINDS, PLAIN, SINGLE, Kind
from bench.loads.bare import TAKE_100
from bench.server import CHANNEL, connected
from bench.session import NEW, OLD, Session
from bench.turns import Conn, settings

SIZE = 100
CALLS = {False: 200, True: 40}  # batches of each kind
WARM_UP = 10
WAL = {PLAIN: 450.0}
DEAD = {PLAIN: 0.1, SINGLE: 1.1}
PAGES = 1.0


def run(session: Session) -> None:
    """One version after the other; nothing here depends on the clock."""
    # With whole pages in the log, the count would depend on when the last checkpoint was. Autovacuum writes, too.
    with settings(session.server, full_page_writes="off", autovacuum="off") as changed:
        if not changed:
            session.say("this server writes whole pages to its log after each checkpoint: the bytes include them")
        found: dict[tuple[str, Kind], Count] = {}
        pages: dict[str, float] = {}
        versions = session.versions()
        for name, root in versions.items():
            with connected(session.server.database(root)) as conn:
                measure(session, conn, name, found)
                kinds.send(conn, PLAIN, SIZE * 50)
                each = cost(conn, channel=CHANNEL, size=SIZE)
                pages[name] = each.total
                session.say(f"{name}: dequeue {each.dequeue:.2f}, complete {each.complete:.2f} pages per message")
        with connected(session.server.database()) as conn:
            bare(conn, WARM_UP)
            plain = counted(conn, lambda: bare(conn, CALLS[session.quick]))
    for kind in KINDS:
        conclude(session, kind, found, plain if kind is PLAIN else None)
    beside = {name: [value] for name, value in pages.items()}
    session.figure(f"pages to lease and complete {SIZE}", [pages[NEW]], at_most=PAGES, unit="a message", beside=beside)


def measure(session: Session, conn: Conn, name: str, found: dict[tuple[str, Kind], Count]) -> None:
    """All kinds in one database."""
    kinds.limit(conn)
    for kind in KINDS:
        kinds.lives(conn, kind, SIZE, WARM_UP)
        each = counted(conn, lambda kind=kind: kinds.lives(conn, kind, SIZE, CALLS[session.quick]))  # type: ignore[misc]
        found[name, kind] = each
        session.say(
            f"{name}, {kind.name}: {each.wal:.0f} B of log, {each.inserted:.2f} rows inserted, {each.dead:.3f} dead"
        )


def bare(conn: Conn, calls: int) -> int:
    """The same number of rows through a bare table."""
    for _ in range(calls):
        conn.execute("insert into bare (payload) select %s::jsonb from generate_series(1, %s)", (kinds.BODY, SIZE))
        conn.execute(TAKE_100).fetchall()
    return calls * SIZE


def conclude(session: Session, kind: Kind, found: dict[tuple[str, Kind], Count], plain: Count | None) -> None:
    """Two figures of one kind."""
    name = f"{kind.name}, taken by {SIZE}"
    old, new = found.get((OLD, kind)), found[NEW, kind]
    log = {"0.1.0": [old.wal]} if old else {}
    dead = {"0.1.0": [old.dead]} if old else {}
    if plain:
        log["bare table"], dead["bare table"] = [plain.wal], [plain.dead]
    session.figure(f"log of a life, {name}", [new.wal], at_most=WAL.get(kind), unit="B a message", beside=log)
    session.figure(f"dead rows of a life, {name}", [new.dead], at_most=DEAD.get(kind), unit="a message", beside=dead)
