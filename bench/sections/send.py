"""One message, one commit, against a bare INSERT of the same payload; with an empty queue and a deep one."""

from __future__ import annotations

from bench import fill
from bench.loads import bare, queue
from bench.readings import Reading, Series
from bench.server import CHANNEL, connected
from bench.session import Session

DEPTHS = {False: 1_000_000, True: 100_000}
TARGETS = {1: None, 4: 0.7}  # by the number of clients


def run(session: Session) -> None:
    """Measure both depths."""
    dsn = session.server.database()
    measure(session, dsn, "empty queue")
    depth = DEPTHS[session.quick]
    session.say(f"fills the queue with {depth:,} messages")
    with connected(dsn) as conn:
        fill.backlog(conn, CHANNEL, depth)
    measure(session, dsn, f"{depth:,} queued")


def measure(session: Session, dsn: str, state: str) -> None:
    """Send and insert in turn, by one client and by four."""
    series = {clients: Series() for clients in TARGETS}
    for repeat in session.repeat():
        for clients, each in series.items():
            readings: dict[str, Reading] = {}
            # Who goes first changes: neither always has the quieter moment.
            for what in ("insert", "send") if repeat % 2 else ("send", "insert"):
                if what == "send":
                    pace = session.crew.run(queue.send, dsn, session.seconds, workers=clients, channel=CHANNEL)
                else:
                    pace = session.crew.run(bare.insert, dsn, session.seconds, workers=clients)
                readings[what] = pace.reading()
            each.add(readings["send"], readings["insert"])
            session.say(
                f"{state}, {clients} clients: {readings['send'].rate:,.0f} sends/s, "
                f"{readings['insert'].rate:,.0f} bare inserts/s"
            )
    for clients, each in series.items():
        name = f"send / bare INSERT, {clients} client{'s' if clients > 1 else ''}, {state}"
        session.figure(name, each.ratios(), at_least=TARGETS[clients], beside=each.company("sends/s", "inserts/s"))
