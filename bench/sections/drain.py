"""Dequeue and complete in batches of 100 on a backlog, by one and two connections, with and without the archive."""

from __future__ import annotations

from bench import fill
from bench.loads import bare, queue
from bench.pace import Pace
from bench.payloads import text
from bench.readings import Reading, Series, between
from bench.server import CHANNEL, connected
from bench.session import Session

SIZE = 100
WITH, WITHOUT = "with archive", "without archive"
TARGETS = {(WITH, 1): 0.55, (WITH, 2): 0.75, (WITHOUT, 1): 0.65, (WITHOUT, 2): 0.9}
BARE = "bare DELETE … RETURNING"
BY_CLIENT = "Menzil client, with archive"


def run(session: Session) -> None:
    """Each repeat in a fresh database, L before and after each measurement."""
    series = {key: Series() for key in (*TARGETS, (BY_CLIENT, 1), (BARE, 1))}
    for repeat in session.repeat():
        dsn = session.server.database()
        before = session.life_cycle(dsn)
        order = list(series)
        for key in order if repeat % 2 else reversed(order):
            pace = measure(session, dsn, before, *key)
            after = session.life_cycle(dsn)
            cycle = between(before, after)
            series[key].add(pace.reading(), cycle)
            dry = ", ran dry" if pace.ran_dry else ""
            session.say(f"{key[0]}, {key[1]} connections: {pace.rate:,.0f}/s, L {cycle.rate:,.0f}/s{dry}")
            before = after
    for key, each in series.items():
        name = f"drain / L, {key[0]}, {key[1]} connection{'s' if key[1] > 1 else ''}"
        company = each.company("messages/s", "L")
        if key[0] == BY_CLIENT:
            del company["by CPU"]  # the server processes behind its pool are not seen
        session.figure(name, each.ratios(), at_least=TARGETS.get(key), beside=company)


def measure(session: Session, dsn: str, cycle: Reading, what: str, clients: int) -> Pace:
    """One load on a backlog that lasts for it."""
    enough = int(cycle.rate * session.seconds * 1.3)
    with connected(dsn) as conn:
        if what == BARE:
            conn.execute("insert into bare (payload) select %s::jsonb from generate_series(1, %s)", (text(0), enough))
            return session.crew.run(bare.take, dsn, session.seconds, workers=clients)
        conn.execute("select menzil.set_setting('archive_completed', %s)", (str(what != WITHOUT).lower(),))
        top_up(conn, enough)
    load = queue.drain_by_client if what == BY_CLIENT else queue.drain
    return session.crew.run(load, dsn, session.seconds, workers=clients, size=SIZE)


def top_up(conn: fill.Conn, enough: int) -> None:
    """Have at least so many messages waiting in one channel."""
    waiting = conn.execute("select count(*) from menzil.ready").fetchone()
    fill.backlog(conn, CHANNEL, max(0, enough - (waiting[0] if waiting else 0)))
