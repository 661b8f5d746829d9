"""Churn while one REPEATABLE READ transaction stays open: the classic killer of queues in a database.

Two databases take turns in slices of ten seconds, one with a snapshot held in it from beginning to end, one without:
other work of the machine hits both. Half way, while every table is empty, all of them are analyzed: statistics
that say "no rows" must not make a plan that reads all of them later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import psycopg

from bench import fill, machine
from bench.loads import queue
from bench.pace import Pace
from bench.readings import Series
from bench.server import connected
from bench.session import Session

CHANNELS = 100
SIZE = 100
WORKERS = 2
SLICES = {False: (30, 10.0), True: (8, 5.0)}  # quick: how many, and how many seconds each

_TABLES = """
select c.oid::regclass::text from pg_class c
where c.relnamespace = 'menzil'::regnamespace and c.relkind in ('r', 'p') order by 1"""

_BYTES = """
select c.relname, pg_total_relation_size(c.oid) from pg_class c
where c.relnamespace = 'menzil'::regnamespace and c.relkind = 'r' and c.relname not like 'archive%%'
order by 2 desc limit 5"""


@dataclass
class Leg:
    """One of the two databases and what was measured in it."""

    name: str
    dsn: str
    slices: list[Pace] = field(default_factory=list)

    def p99(self, part: slice) -> float:
        steps = sorted(step for pace in self.slices[part] for step in pace.steps())
        return steps[int(len(steps) * 0.99)] * 1000


def run(session: Session) -> None:
    """Both legs in slices, then the ratios."""
    slices, seconds = SLICES[session.quick]
    free, held = Leg("not held", session.server.database()), Leg("held", session.server.database())
    calm = session.server.database()
    cycles: list[float] = []
    for leg in (free, held):
        with connected(leg.dsn) as conn:
            fill.channels(conn, CHANNELS)
    with psycopg.connect(held.dsn) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select count(*) from menzil.channel")
        for number in range(slices):
            session.patience -= machine.wait_for_quiet(session.patience)
            if number == slices // 2:
                for leg in (free, held):
                    analyze(session, leg)
            for leg in (free, held) if number % 2 else (held, free):
                pace = session.crew.run(queue.churn, leg.dsn, seconds, workers=WORKERS, channels=CHANNELS, size=SIZE)
                leg.slices.append(pace)
            cycles.append(session.life_cycle(calm).rate)
            rates = ", ".join(f"{leg.name} {leg.slices[-1].rate:,.0f}/s" for leg in (free, held))
            session.say(f"slice {number + 1} of {slices}, {seconds:.0f} s each: {rates}, L {cycles[-1]:,.0f}/s")
        for leg in (free, held):
            session.say(f"{leg.name}: largest tables {sizes(leg.dsn)}")
    conclude(session, free, held, cycles)


def conclude(session: Session, free: Leg, held: Leg, cycles: list[float]) -> None:
    """The figures."""
    whole, late = Series(), Series()
    for number, (one, other) in enumerate(zip(held.slices, free.slices, strict=True)):
        whole.add(one.reading(), other.reading())
        if number >= len(held.slices) * 2 // 3:
            late.add(one.reading(), other.reading())
    for name, series in (("churn, snapshot held / not held", whole), ("the same, last third of the run", late)):
        company: dict[str, Sequence[float]] = {**series.company("held/s", "not held/s"), "L": cycles}
        session.figure(name, series.ratios(), at_least=0.8, beside=company)
    cpu = [other.cpu / one.cpu for one, other in zip(late.ours, late.base, strict=True)]
    session.figure("the same by CPU, last third of the run", cpu, at_least=0.92)
    for leg in (free, held):
        flip(session, leg, cycles)
    fifth = max(1, len(free.slices) // 5)
    first, last = free.p99(slice(0, fifth)), free.p99(slice(-fifth, None))
    beside = {"first ms": [first], "last ms": [last]}
    session.figure("p99 of a cycle, last / first fifth, not held", [last / first], beside=beside)


def flip(session: Session, leg: Leg, cycles: list[float]) -> None:
    """Did the ANALYZE change a plan? Processor time per message tells; the clock also hears what others do."""
    half = len(leg.slices) // 2
    costs = [pace.reading().cpu for pace in leg.slices]
    ratios = [before / after for before, after in zip(costs[:half], costs[half:], strict=True)]
    parts = [pace.rate / cycle for pace, cycle in zip(leg.slices, cycles, strict=True)]
    beside = {"by the clock": [median(parts[half:]) / median(parts[:half])]}
    name = f"churn per CPU second, after / before ANALYZE of empty tables, {leg.name}"
    session.figure(name, ratios, at_least=0.8, beside=beside)


def analyze(session: Session, leg: Leg) -> None:
    """Empty the queue, then let the planner believe that it always is."""
    with connected(leg.dsn) as conn:
        step = queue.drain(leg.dsn, SIZE)
        while conn.execute("select exists (select from menzil.queue)").fetchone() == (True,):
            step()
        for (table,) in conn.execute(_TABLES).fetchall():
            conn.execute(f"analyze {table}")
    session.say(f"{leg.name}: analyzed every table of menzil while the queue was empty")


def sizes(dsn: str) -> str:
    """The largest live tables with their indexes."""
    with connected(dsn) as conn:
        return ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in conn.execute(_BYTES))
