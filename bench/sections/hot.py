"""One hot channel: do more consumers drain it faster, or do they only get in each other's way?"""

from __future__ import annotations

from bench.loads import queue
from bench.readings import Reading, Series
from bench.sections.drain import top_up
from bench.server import connected
from bench.session import NEW, Session

CONSUMERS = (1, 2, 4)
TARGETS = {2: 1.5, 4: 1.3}
LOADS = {"two calls": queue.drain, "message_next": queue.drain_next}


def run(session: Session) -> None:
    """Each number of consumers in turn, on a backlog that outlasts them."""
    sides = {NEW: session.server.database()} | {
        name: session.server.database(root) for name, root in session.versions().items() if name != NEW
    }
    series = {(name, consumers): Series() for name in (*LOADS, *sides) if name != NEW for consumers in TARGETS}
    cycles: list[float] = []
    for repeat in session.repeat():
        cycle = session.life_cycle(sides[NEW])
        cycles.append(cycle.rate)
        for name in dict.fromkeys(name for name, _ in series):
            dsn, load = sides.get(name, sides[NEW]), LOADS.get(name, queue.drain)
            readings: dict[int, Reading] = {}
            for consumers in CONSUMERS if repeat % 2 else reversed(CONSUMERS):
                with connected(dsn) as conn:
                    top_up(conn, int(cycle.rate * session.seconds * 1.5))
                pace = session.crew.run(load, dsn, session.seconds, workers=consumers, size=100)
                readings[consumers] = pace.reading()
                if pace.ran_dry:
                    session.say(f"{name}, {consumers} consumers: ran dry")
            for consumers in TARGETS:
                series[name, consumers].add(readings[consumers], readings[1])
            told = ", ".join(f"{consumers}: {readings[consumers].rate:,.0f}/s" for consumers in CONSUMERS)
            session.say(f"{name}, consumers {told}")
    for (name, consumers), each in series.items():
        company = {**each.company("many/s", "one/s"), "L": cycles}
        target = TARGETS[consumers] if name == "two calls" else None
        figure = f"one hot channel, {name}, {consumers} consumers / 1 consumer"
        session.figure(figure, each.ratios(), at_least=target, beside=company)
