"""Database time of every page of the console beside a million waiting messages, five million ended and 100,000 dead.

Twice: when no dequeue has folded what was sent one by one, and when all of it is folded. A page asks for its parts on
one connection. What counts is the processor time of the server process, and of the repetitions the lowest, because
other programs only add to it; the median, and both by wall, stand beside it.
"""

from __future__ import annotations

import time

from bench import fill, looks, stock
from bench.looks import BUDGETS, LIVE, Cost, Visit
from bench.server import connected
from bench.session import Session

SIZES = {False: stock.FULL, True: stock.QUICK}
TIMES = {False: 7, True: 3}
#: Milliseconds for a draft of a plan: the statement timeout of the console, less what the page itself needs.
DRAFT = 2_700.0
DRAFTS = (
    ("redrive", '{"all": true}'),
    ("redrive", '{"channel": "c1"}'),
    ("cancel", '{"all": true}'),
    ("cancel", '{"channel": "c1"}'),
    ("cancel", '{"channel": "c1", "since": "2020-01-01"}'),
    ("replay", '{"channel": "partner-3", "since": "2020-01-01"}'),
    ("replay", '{"channel": "c1", "since": "2020-01-01"}'),
    ("replay", '{"channel": "partner-3", "since": "2020-01-01", "status": "failed"}'),
)


def run(session: Session) -> None:
    """Fill, look, fold, look again."""
    dsn = session.server.database()
    began = time.monotonic()
    with connected(dsn) as conn:
        found = stock.build(conn, SIZES[session.quick])
    session.say(f"{found.size} filled in {time.monotonic() - began:.0f} s")
    measure(session, dsn, found, "just sent")
    with connected(dsn) as conn:
        fill.settle(conn)
        conn.execute("vacuum analyze")
    measure(session, dsn, found, "folded")
    drafts(session, dsn)
    session.server.remove(dsn)


def measure(session: Session, dsn: str, found: stock.Stock, state: str) -> None:
    """Every page, and every fragment that an open page asks for again."""
    with looks.connection(dsn) as conn:
        dearest: dict[tuple[str, str], tuple[Visit, Cost]] = {}
        for visit in looks.visits(found):
            cost = looks.cost(conn, visit, TIMES[session.quick])
            session.say(f"{state}, {visit.name}: CPU {cost.least:.1f} ms, wall {min(cost.wall):.1f} ms {cost.trouble}")
            kinds = [visit.kind, *([LIVE] if visit.page.live else [])]
            for kind in kinds:
                known = dearest.get((visit.page.path, kind))
                if known is None or cost.least > known[1].least:
                    dearest[visit.page.path, kind] = visit, cost
    for (_, kind), (visit, cost) in dearest.items():
        name = f"{kind} {visit.name}, {state}"
        session.figure(name, [cost.least], at_most=BUDGETS[kind], unit="ms", beside=cost.told)
        if cost.least > BUDGETS[kind]:
            for text, spent in sorted(cost.asked.items(), key=lambda each: -each[1])[:3]:
                session.say(f"   {spent:.1f} ms: {text[:150]}")


def drafts(session: Session, dsn: str) -> None:
    """The count of a draft comes back in time, exact or said to be an estimate."""
    with connected(dsn) as conn:
        for kind, where in DRAFTS:
            conn.execute("set statement_timeout = '20s'")
            began = time.perf_counter()
            number = stock.one(conn, "select menzil.plan_create(%s, %s::jsonb)", kind, where)
            spent = (time.perf_counter() - began) * 1e3
            row = conn.execute("select counted, counted_exactly from menzil.plans where id = %s", (number,)).fetchone()
            session.figure(f"draft {kind} {where}", [spent], at_most=DRAFT, unit="ms", beside={"counted": [row[0]]})  # type: ignore[index]
            session.say(f"   {row}")
