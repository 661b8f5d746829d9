"""Senders below saturation and real workers for minutes: does anything get slower, larger or more?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

from bench.load import senders
from bench.load.arrivals import Arrivals
from bench.load.pages import Page
from bench.load.watch import Watch, growth
from bench.plot.lines import Chart, Series
from bench.server import connected
from bench.service import Service
from bench.session import Session

SENDERS = 2
WORKERS = 2
SHARE = 0.5  # of what goes through without a pace
CALIBRATION = {False: 10.0, True: 2.0}
#: Autovacuum comes once a minute: after the third time tables and indexes have the size that they keep.
WARM_UP = {False: 180.0, True: 4.0}
SECONDS = {False: 300.0, True: 15.0}
#: A checkpoint makes every page expensive once. One in each fifth, or the fifths could not be compared.
CHECKPOINTS = "alter system set checkpoint_timeout = '60s'"
LATENCY, SIZE, MEMORY = 1.25, 1.5, 1.05


def run(session: Session, page: Page) -> None:
    """Calibrate, warm up, then measure."""
    quick = session.quick
    dsn = session.server.database()
    with regular_checkpoints(session, dsn), tempfile.TemporaryDirectory(prefix="mz-") as place:
        arrivals = Arrivals(Path(place) / "arrivals")
        with Service(
            dsn, app="bench.load.apps:arrive", processes=WORKERS, environment=arrivals.environment()
        ) as worker:
            saturation = session.crew.run(senders.free, dsn, CALIBRATION[quick], workers=SENDERS).rate
            rate = saturation * SHARE
            session.say(f"{saturation:,.0f} messages/s by {SENDERS} senders unpaced; goes on with {rate:,.0f}/s")
            options: dict[str, Any] = {"workers": SENDERS, "warm_up": 0, "rate": rate / SENDERS}
            session.crew.run(senders.paced, dsn, WARM_UP[quick], **options)
            session.say("warm")
            first = arrivals.count()
            with Watch(dsn, [worker.pid], arrivals.count, every=0.5 if quick else 2.0) as watch:
                pace = session.crew.run(senders.paced, dsn, SECONDS[quick], **options)
            arrivals.wait(first + sum(sum(track.units) for track in pace.tracks) - SENDERS * 19)
        conclude(session, page, watch, arrivals.read(first), rate)


@contextmanager
def regular_checkpoints(session: Session, dsn: str) -> Iterator[None]:
    """While this lasts, the server makes one a minute; a server of yours stays as it is set."""
    if not session.server.own:
        session.say("this server makes checkpoints when it likes: fifths with one and without compare badly")
        yield
        return
    with connected(dsn) as conn:
        conn.execute(CHECKPOINTS)
        conn.execute("select pg_reload_conf()")
        try:
            yield
        finally:
            conn.execute("alter system reset checkpoint_timeout")
            conn.execute("select pg_reload_conf()")


def conclude(session: Session, page: Page, watch: Watch, seen: list[tuple[int, int]], rate: float) -> None:
    """The figures and the plots."""
    waits = [(sent / 1e9 - watch.began, (arrived - sent) / 1e6) for sent, arrived in seen]
    length = max(at for at, _ in waits)
    fifths = [[wait for at, wait in waits if place * length / 5 <= at < (place + 1) * length / 5] for place in range(5)]
    p99 = [quantiles(each, n=100, method="inclusive")[98] for each in fifths]
    beside = {"first ms": [p99[0]], "last ms": [p99[4]], "messages/s": [len(waits) / length], "asked for": [rate]}
    session.figure("p99 sent to handled, last / first fifth", [p99[4] / p99[0]], at_most=LATENCY, beside=beside)
    looks = watch.looks
    worst, whose = growth(looks)
    totals = {"first MB": [looks[0].total / 1e6], "last MB": [looks[-1].total / 1e6]}
    session.figure(f"size of hot tables, last / first fifth, worst: {whose}", [worst], at_most=SIZE, beside=totals)
    fifth = max(1, len(looks) // 5)
    early, late = looks[:fifth], looks[-fifth:]
    memory = [mean(look.memory for look in some) for some in (early, late)]
    company = {"first MB": [memory[0]], "last MB": [memory[1]]}
    session.figure("memory of the workers, last / first fifth", [memory[1] / memory[0]], at_most=MEMORY, beside=company)
    most = [max(look.connections for look in some) for some in (early, late)]
    session.figure("connections, last / first fifth", [most[1] / most[0]], at_most=1.0, beside={"at most": [most[1]]})
    page.plot("load-latency", latency_chart(waits, length))
    page.plot("load-sizes", sizes_chart(watch))


def latency_chart(waits: list[tuple[float, float]], length: float) -> Chart:
    """Percentiles over time, sixty pieces."""
    pieces: list[list[float]] = [[] for _ in range(60)]
    for at, wait in waits:
        pieces[min(59, max(0, int(at / length * 60)))].append(wait)
    found = [
        (length * (place + 0.5) / 60, quantiles(each, n=100, method="inclusive"))
        for place, each in enumerate(pieces)
        if len(each) > 1
    ]
    series = [Series(f"p{part}", [(at, cuts[part - 1]) for at, cuts in found]) for part in (99, 90, 50)]
    return Chart("From the call that sends to the handler", "milliseconds", "seconds", series)


def sizes_chart(watch: Watch) -> Chart:
    """The four largest hot tables with their indexes, and all of them together."""
    last = watch.looks[-1].tables
    largest = sorted(last, key=lambda name: -sum(last[name]))[:4]
    series = [Series("all hot tables", [(look.at, look.total / 1e6) for look in watch.looks])]
    series += [
        Series(name, [(look.at, sum(look.tables.get(name, (0, 0))) / 1e6) for look in watch.looks]) for name in largest
    ]
    return Chart("Hot tables with their indexes", "megabytes", "seconds", series)
