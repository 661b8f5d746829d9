"""A hundred thousand channels against one: what does a message cost to send, and to lease and complete?"""

from __future__ import annotations

from bench import fill, usage
from bench.load.pages import Page
from bench.loads import queue
from bench.plot.lines import Chart, Series
from bench.readings import Reading
from bench.server import connected
from bench.session import Session

CHANNELS = {False: 100_000, True: 2_000}
EACH = 5  # messages of a channel in one round
ROUNDS = {False: 3, True: 2}
SIZE = 100
FLAT = 1.6


def run(session: Session, page: Page) -> None:
    """The same number of messages to many channels and to one, in turn; processor time of the server decides."""
    many = CHANNELS[session.quick]
    count = many * EACH
    dsns = {"many": session.server.database(), "one": session.server.database()}
    for name, dsn in dsns.items():
        with connected(dsn) as conn:
            session.say(f"makes {many if name == 'many' else 1:,} channels")
            fill.channels(conn, many if name == "many" else 1)
    sends: dict[str, list[float]] = {name: [] for name in dsns}
    drains: dict[str, list[Reading]] = {name: [] for name in dsns}
    for number in range(ROUNDS[session.quick]):
        for name in dsns if number % 2 else reversed(dsns):
            with connected(dsns[name]) as conn:
                server = usage.server_process(conn)
                before = usage.cpu(server)
                fill.spread(conn, number * count, count, many if name == "many" else 1)
                sends[name].append((usage.cpu(server) - before) / count * 1e6)
                fill.settle(conn)
            pace = session.crew.run(queue.drain, dsns[name], 600.0, workers=2, warm_up=0, size=SIZE)
            drains[name].append(pace.reading())
            session.say(f"{name}: {sends[name][-1]:.1f} µs to send, {drains[name][-1].cpu:.1f} µs to handle")
    conclude(session, page, sends, drains, many)


def conclude(
    session: Session, page: Page, sends: dict[str, list[float]], drains: dict[str, list[Reading]], many: int
) -> None:
    """The figures and the plot."""
    costs = {name: [reading.cpu for reading in each] for name, each in drains.items()}
    for what, found in (("send", sends), ("lease and complete", costs)):
        ratios = [one / other for one, other in zip(found["many"], found["one"], strict=True) if other]
        if ratios:
            beside = {f"µs {name}": each for name, each in found.items()}
            name = f"processor time to {what}, {many:,} channels / 1 channel"
            session.figure(name, ratios, at_most=FLAT, beside=beside)
    series = [
        Series(f"{name}: lease and complete", [(float(place + 1), cost) for place, cost in enumerate(each)])
        for name, each in costs.items()
    ]
    series += [
        Series(f"{name}: send", [(float(place + 1), cost) for place, cost in enumerate(each)])
        for name, each in sends.items()
    ]
    page.plot("load-channels", Chart(f"{many:,} channels and one", "µs per message", "round", series))
