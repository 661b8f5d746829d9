"""A million messages wait, nine of ten in one channel: when are the small channels served?"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from bench import fill
from bench.load.apps import CHANNELS, SINGLE
from bench.load.arrivals import Arrivals
from bench.load.pages import Page
from bench.payloads import text
from bench.plot.lines import Chart, Series
from bench.server import CHANNEL, connected
from bench.service import Service
from bench.session import Session

LARGE = {False: 900_000, True: 45_000}
EACH = {False: 1_000, True: 50}  # messages of a small channel
EVERY = 0.1  # seconds between two single messages
PATIENCE = {False: 300.0, True: 60.0}
EARLY = 100 * len(CHANNELS)  # messages: as if each channel, in its turn, had a hundred
PROMPT = 1_000.0  # milliseconds


def run(session: Session, page: Page) -> None:
    """Fill, start a worker, and send single messages to another channel until the backlog is gone."""
    quick = session.quick
    dsn = session.server.database()
    whole = LARGE[quick] + EACH[quick] * len(CHANNELS)
    with connected(dsn) as conn, tempfile.TemporaryDirectory(prefix="mz-") as place:
        for name in (*CHANNELS, SINGLE):
            conn.execute("select menzil.channel_set(%s)", (name,))
        conn.execute("select menzil.channel_pause(name) from unnest(%s::text[]) name", ([CHANNEL, *CHANNELS],))
        session.say(f"fills one channel with {LARGE[quick]:,} messages and {len(CHANNELS)} with {EACH[quick]:,} each")
        fill.exactly(conn, [CHANNEL], LARGE[quick], [text(number) for number in range(1000)])
        for number, name in enumerate(CHANNELS):
            fill.exactly(conn, [name], EACH[quick], [json.dumps({"channel": number, "note": "x" * 100})] * EACH[quick])
        arrivals = Arrivals(Path(place) / "arrivals")
        with Service(dsn, app="bench.load.apps:crowd", environment=arrivals.environment()):
            began = time.monotonic_ns()
            conn.execute("select menzil.channel_resume(name) from unnest(%s::text[]) name", ([CHANNEL, *CHANNELS],))
            sent = singles(session, conn, arrivals, whole)
            arrivals.wait(whole + sent)
        conclude(session, page, arrivals.read(), began, whole)


def singles(session: Session, conn: fill.Conn, arrivals: Arrivals, whole: int) -> int:
    """Send one message now and then while the backlog lasts; returns how many."""
    sent, ends, told = 0, time.monotonic() + PATIENCE[session.quick], 0.0
    while (count := arrivals.count()) < whole * 0.98 and time.monotonic() < ends:
        body = json.dumps({"at": time.monotonic_ns()})
        conn.execute("select menzil.send(%s, %s::jsonb)", (SINGLE, body))
        sent += 1
        if time.monotonic() - told > 5:
            told = time.monotonic()
            session.say(f"{count:,} of {whole:,} handled")
        time.sleep(EVERY)
    return sent


def conclude(session: Session, page: Page, seen: list[tuple[int, int]], began: int, whole: int) -> None:
    """The figures and the plot."""
    firsts: dict[int, tuple[int, int]] = {}  # of each small channel: how many came before, and when
    waits: list[float] = []
    for place, (mark, at) in enumerate(seen):
        if mark <= -2:
            firsts.setdefault(mark, (place, at))
        elif mark >= 0:
            waits.append((at - mark) / 1e6)
    if len(firsts) != len(CHANNELS):
        raise RuntimeError(f"{len(firsts)} of {len(CHANNELS)} small channels were served.")
    last = max(place for place, _ in firsts.values())
    beside = {"ms": [(max(at for _, at in firsts.values()) - began) / 1e6]}
    name = f"handled of {whole:,} before every small channel had its first"
    session.figure(name, [last], at_most=EARLY, unit="messages", beside=beside)
    p99 = quantiles(waits, n=100, method="inclusive")[98] if len(waits) > 1 else waits[0]
    company = {"p50": [median(waits)], "longest": [max(waits)], "messages": [float(len(waits))]}
    name = "a message to an empty channel meanwhile, p99 sent to handled"
    session.figure(name, [p99], at_most=PROMPT, unit="ms", beside=company)
    page.plot("load-backlog", chart(seen, began))


def chart(seen: list[tuple[int, int]], began: int) -> Chart:
    """Shares handled over time, of the large channel and of the small ones."""
    large = [(at - began) / 1e9 for mark, at in seen if mark == -1]
    small = [(at - began) / 1e9 for mark, at in seen if mark <= -2]
    series = []
    for name, times in (("the large channel", large), ("the small channels", small)):
        step = max(1, len(times) // 100)
        points = [(times[place], 100 * (place + 1) / len(times)) for place in range(0, len(times), step)]
        series.append(Series(name, [(0.0, 0.0), *points, (times[-1], 100.0)]))
    return Chart("A backlog with one large channel and a hundred small ones", "% handled", "seconds", series)
