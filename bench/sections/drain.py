"""Dequeue and complete on a backlog, with the disk, beside the life cycle L: in two calls and in one, beside 0.1.0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench import fill
from bench.crew import Step
from bench.loads import bare, queue
from bench.pace import Pace
from bench.payloads import text
from bench.readings import Reading, Series, between
from bench.server import CHANNEL, connected
from bench.session import NEW, OLD, Session


@dataclass(frozen=True)
class Way:
    """One way to drain. The target is a share of L by processor time."""

    name: str
    load: Callable[..., Step] = queue.drain
    clients: int = 1
    size: int = 100
    target: float | None = None
    version: str = NEW
    archive: bool = True

    @property
    def title(self) -> str:
        return f"{self.name}, {self.size} at a time, {self.clients} connection{'s' if self.clients > 1 else ''}"


TWO, NEXT = "two calls", "message_next"
BARE = Way("bare DELETE … RETURNING", bare.take)
BY_CLIENT = Way("Menzil client", queue.drain_by_client)
WAYS = (
    Way(TWO, target=0.7),
    Way(NEXT, queue.drain_next, target=0.85),
    Way(TWO, clients=2, target=0.6),
    Way(NEXT, queue.drain_next, clients=2, target=0.75),
    Way(TWO, size=500, target=1.3),
    Way("0.1.0", version=OLD),
    Way("0.1.0", clients=2, version=OLD),
    BARE,
    Way("two calls, without archive", archive=False),
    BY_CLIENT,
)


def run(session: Session) -> None:
    """Each repeat in fresh databases, L before and after each measurement."""
    versions = session.versions()
    ways = [way for way in (WAYS[:-2] if session.quick else WAYS) if way.version in versions]
    series = {way: Series() for way in ways}
    for repeat in session.repeat():
        dsns = {name: session.server.database(root) for name, root in versions.items()}
        before = session.life_cycle(dsns[NEW])
        for way in ways if repeat % 2 else reversed(ways):
            pace = measure(session, dsns[way.version], before, way)
            after = session.life_cycle(dsns[NEW])
            cycle = between(before, after)
            series[way].add(pace.reading(), cycle)
            dry = ", ran dry" if pace.ran_dry else ""
            found = f"{pace.rate:,.0f}/s at {pace.reading().cpu:.1f} µs, L {cycle.rate:,.0f}/s at {cycle.cpu:.1f} µs"
            session.say(f"{way.title}: {found}{dry}")
            before = after
        for dsn in dsns.values():
            session.server.remove(dsn)
    for way, each in series.items():
        conclude(session, way, each)


def conclude(session: Session, way: Way, each: Series) -> None:
    """By processor time, which a busy machine changes less; by the clock beside it."""
    company = {**each.company("messages/s", "L"), "by the clock": each.ratios()}
    if way is BY_CLIENT:
        del company["by CPU"], company["by the clock"]  # the server processes behind its pool are not seen
        session.figure(f"drain / L, {way.title}, by the clock", each.ratios(), beside=company)
        return
    company["median by CPU"] = company.pop("by CPU")
    session.figure(f"drain / L by CPU, {way.title}", [each.by_cpu()], at_least=way.target, beside=company)


def measure(session: Session, dsn: str, cycle: Reading, way: Way) -> Pace:
    """One load on a backlog that lasts for it."""
    enough = int(cycle.rate * session.seconds * (1.5 if way.size == 100 else 3))
    with connected(dsn) as conn:
        if way is BARE:
            conn.execute("insert into bare (payload) select %s::jsonb from generate_series(1, %s)", (text(0), enough))
            return session.crew.run(bare.take, dsn, session.seconds, workers=way.clients)
        conn.execute("select menzil.set_setting('archive_completed', %s)", (str(way.archive).lower(),))
        top_up(conn, enough)
    return session.crew.run(way.load, dsn, session.seconds, workers=way.clients, size=way.size)


def top_up(conn: fill.Conn, enough: int) -> None:
    """Have at least so many messages waiting in one channel, and none of them in the log of sends."""
    waiting = conn.execute("select count(*) from menzil.queue where status = 'pending'").fetchone()
    fill.backlog(conn, CHANNEL, max(0, enough - (waiting[0] if waiting else 0)))
    fill.settle(conn)
