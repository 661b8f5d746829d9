"""One hot channel: do more consumers drain it faster, or do they only get in each other's way?"""

from __future__ import annotations

from bench.loads import queue
from bench.readings import Reading, Series
from bench.sections.drain import top_up
from bench.server import connected
from bench.session import Session

CONSUMERS = (1, 2, 4)
TARGETS = {2: None, 4: 1.0}


def run(session: Session) -> None:
    """Each number of consumers in turn, on a backlog that outlasts them."""
    series = {consumers: Series() for consumers in TARGETS}
    cycles: list[float] = []
    dsn = session.server.database()
    for repeat in session.repeat():
        cycle = session.life_cycle(dsn)
        cycles.append(cycle.rate)
        readings: dict[int, Reading] = {}
        for consumers in CONSUMERS if repeat % 2 else reversed(CONSUMERS):
            with connected(dsn) as conn:
                top_up(conn, int(cycle.rate * session.seconds * 1.3))
            pace = session.crew.run(queue.drain, dsn, session.seconds, workers=consumers, size=100)
            readings[consumers] = pace.reading()
        for consumers, each in series.items():
            each.add(readings[consumers], readings[1])
        session.say(", ".join(f"{consumers}: {readings[consumers].rate:,.0f}/s" for consumers in CONSUMERS))
    for consumers, each in series.items():
        company = {**each.company("many/s", "one/s"), "L": cycles}
        name = f"one hot channel, {consumers} consumers / 1 consumer"
        session.figure(name, each.ratios(), at_least=TARGETS[consumers], beside=company)
