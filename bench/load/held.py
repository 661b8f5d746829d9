"""Send and handle at full speed by real workers, with a REPEATABLE READ transaction open all the time and without one.

Two databases take turns in slices, as in the section `held`: other work of the machine hits both.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

import psycopg

from bench.load import senders
from bench.load.arrivals import Arrivals
from bench.load.pages import Page
from bench.plot.lines import Chart, Series
from bench.service import Service
from bench.session import Session

SLICES = {False: (30, 10.0), True: (4, 2.0)}  # how many of each, and how many seconds
SIZE = 100
LEAST = 0.8


@dataclass
class Leg:
    """One of the two databases."""

    dsn: str
    arrivals: Arrivals
    rates: list[float] = field(default_factory=list)


def run(session: Session, page: Page) -> None:
    """Both legs in slices, then the ratios."""
    slices, seconds = SLICES[session.quick]
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mz-")))
        legs = {name: Leg(session.server.database(), Arrivals(place / name)) for name in ("free", "held")}
        for leg in legs.values():
            app = "bench.load.apps:arrive"
            stack.enter_context(Service(leg.dsn, app=app, environment=leg.arrivals.environment()))
        holder = stack.enter_context(psycopg.connect(legs["held"].dsn))
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select count(*) from menzil.channel")
        for number in range(slices):
            for name in legs if number % 2 else reversed(legs):
                leg = legs[name]
                leg.rates.append(push(session, leg, seconds))
            rates = ", ".join(f"{name} {leg.rates[-1]:,.0f}/s" for name, leg in legs.items())
            session.say(f"slice {number + 1} of {slices}, {seconds:.0f} s each: {rates}")
    ratios = [one / other for one, other in zip(legs["held"].rates, legs["free"].rates, strict=True)]
    third = max(1, slices // 3)
    for name, some in (("whole run", ratios), ("last third", ratios[-third:])):
        beside = {f"{leg}/s": [mean(legs[leg].rates)] for leg in legs}
        session.figure(f"snapshot held / not held, {name}", some, at_least=LEAST, beside=beside)
    lines = [
        Series(f"snapshot {name}", [(at * seconds, rate) for at, rate in enumerate(leg.rates)])
        for name, leg in legs.items()
    ]
    page.plot("load-held", Chart("Messages sent and handled", "messages per second", "seconds of churn", lines))


def push(session: Session, leg: Leg, seconds: float) -> float:
    """One slice: messages handled per second."""
    before, began = leg.arrivals.count(), time.monotonic()
    session.crew.run(senders.pushing, leg.dsn, seconds, warm_up=0, arrivals=str(leg.arrivals.path), size=SIZE)
    handled, took = leg.arrivals.count() - before, time.monotonic() - began
    settled = time.monotonic() + 30
    seen = -1
    while seen != (seen := leg.arrivals.count()) and time.monotonic() < settled:
        time.sleep(0.3)  # what was still waiting belongs to no slice
    return max(1, handled) / took
