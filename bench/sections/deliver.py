"""A backlog delivered over HTTP to a receiver on loopback by one and by several processes, against bare INSERTs.

The worker of 0.1.0 delivers the same backlog in turn, from its own files and in a database of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench import fill, machine, usage
from bench.before import Before
from bench.loads import bare, post
from bench.readings import Reading, Series
from bench.receiver import Receiver
from bench.server import connected
from bench.service import Service
from bench.session import L_CLIENTS, NEW, OLD, Session

MESSAGES = {False: 20_000, True: 2_000}
BESIDE = {False: 20_000, True: 8_000}  # beside 0.1.0
ENDPOINTS = ("hook-0", "hook-1", "hook-2", "hook-3")
TUNED = ("--concurrency", "300", "--batch", "1000")


@dataclass(frozen=True)
class Way:
    """One way to run workers."""

    name: str
    processes: int = 1
    options: tuple[str, ...] = ()
    target: float | None = None


WAYS = (
    Way("one process", target=0.5),
    Way("one process, tuned", options=TUNED),
    Way("2 processes", 2, target=1.1),
    Way("4 processes", 4, target=1.1),
)


@dataclass(frozen=True)
class Delivery:
    """How a backlog went, and microseconds of processor time per message."""

    rate: float
    worker: float
    server: float
    receiver: float
    others: float  # the share of the machine that others used

    def reading(self) -> Reading:
        return Reading(self.rate, self.worker + self.server)


def run(session: Session) -> None:
    """Each way in turn, a reading of bare INSERTs right before or after it."""
    ways = WAYS[::2] if session.quick else WAYS
    series = {way: Series() for way in ways}
    seen: dict[Way, list[Delivery]] = {way: [] for way in ways}
    dsn = session.server.database()
    with Receiver() as receiver:
        prepare(dsn, receiver.url)
        if OLD in session.versions():
            beside(session, receiver)
        for repeat in session.repeat():
            for way in ways if repeat % 2 else reversed(ways):
                if repeat % 2:
                    base = inserts(session, dsn)
                found = deliver(dsn, receiver, MESSAGES[session.quick], way)
                if not repeat % 2:
                    base = inserts(session, dsn)
                series[way].add(found.reading(), base)
                seen[way].append(found)
                session.crew.foreign.append(found.others)
                session.say(
                    f"{way.name}: {found.rate:,.0f} messages/s, {base.rate:,.0f} inserts/s; per message "
                    f"{found.worker:.0f} µs worker, {found.server:.0f} µs server, {found.receiver:.0f} µs receiver"
                )
        for way, each in series.items():
            company = {
                **each.company("messages/s", "inserts/s"),
                "µs worker": [one.worker for one in seen[way]],
                "µs server": [one.server for one in seen[way]],
                "µs receiver": [one.receiver for one in seen[way]],
            }
            name = f"HTTP deliveries / bare INSERT by {L_CLIENTS} clients, {way.name}"
            session.figure(name, each.ratios(), at_least=way.target, beside=company)
        clients(session, receiver)


def beside(session: Session, receiver: Receiver) -> None:
    """One worker of each version in turn."""
    series, way, count = Series(), WAYS[0], BESIDE[session.quick]
    seen: dict[str, list[Delivery]] = {}
    dsns = {name: session.server.database(root) for name, root in session.versions().items()}
    for dsn in dsns.values():
        prepare(dsn, receiver.url)
    for repeat in session.repeat():
        for name in dsns if repeat % 2 else reversed(dsns):
            found = deliver(dsns[name], receiver, count, way, session.before if name == OLD else None)
            seen.setdefault(name, []).append(found)
            session.crew.foreign.append(found.others)
            session.say(
                f"{name}, {way.name}: {found.rate:,.0f} messages/s; per message {found.worker:.0f} µs worker, "
                f"{found.server:.0f} µs server"
            )
    for new, old in zip(seen[NEW], seen[OLD], strict=True):
        series.add(new.reading(), old.reading())
    company = {**series.company("messages/s", "0.1.0/s"), "by the clock": series.ratios()}
    company["median by CPU"] = company.pop("by CPU")
    name = "HTTP deliveries by one worker / 0.1.0, by CPU of worker and server"
    session.figure(name, [series.by_cpu()], at_least=1.1, beside=company)


def prepare(dsn: str, url: str) -> None:
    """Endpoints that lead to the receiver, paused."""
    with connected(dsn) as conn:
        conn.execute("select menzil.set_setting('http_allow_internal_urls', 'true')")
        for name in ENDPOINTS:
            conn.execute("select menzil.create_endpoint(%s, 'http', jsonb_build_object('url', %s::text))", (name, url))


def deliver(dsn: str, receiver: Receiver, count: int, way: Way, before: Before | None = None) -> Delivery:
    """Send while the endpoints are paused, start the worker, resume them, wait for the last request."""
    with connected(dsn) as conn:
        pause(conn, "pause")
        fill.exactly(conn, ENDPOINTS, count)
        conn.execute("checkpoint")
        receiver.begin()
        server = usage.server_process(conn)
        with Service(dsn, *way.options, processes=way.processes, before=before) as worker:
            times, at_start = machine.times(), (worker.cpu(), usage.cpu(server), receiver.cpu())
            pause(conn, "resume")
            receiver.wait(count)
            after = worker.cpu(), usage.cpu(server), receiver.cpu()
            spent = [now - then for now, then in zip(after, at_start, strict=True)]
            others = machine.others(times, sum(spent))
        left = conn.execute("select count(*) from menzil.queue").fetchone()
        if left != (0,) or receiver.count != count:
            raise RuntimeError(f"{receiver.count} requests for {count} messages, {left} of them still queued.")
    worker_us, server_us, receiver_us = (each / count * 1e6 for each in spent)
    return Delivery(count / receiver.seconds, worker_us, server_us, receiver_us, others)


def pause(conn: fill.Conn, what: str) -> None:
    """Pause or resume all endpoints by one statement: all of them begin at the same time."""
    conn.execute(f"select menzil.channel_{what}(name) from unnest(%s::text[]) name", (list(ENDPOINTS),))


def inserts(session: Session, dsn: str) -> Reading:
    """Bare single INSERTs, each its own commit."""
    return session.crew.run(bare.insert, dsn, session.seconds, workers=L_CLIENTS).reading()


def clients(session: Session, receiver: Receiver) -> None:
    """HTTP clients alone, one process each."""
    series = {"our protocol": Series(), "our client": Series()}
    for repeat in session.repeat():
        loads = {"our protocol": post.protocol, "our client": post.wire, "aiohttp": post.aiohttp}
        readings = {
            name: session.crew.run(loads[name], "", session.seconds, url=receiver.url, warm_up=2).reading()
            for name in (loads if repeat % 2 else reversed(loads))
        }
        for name, each in series.items():
            each.add(readings[name], readings["aiohttp"])
        session.say(", ".join(f"{name} {one.rate:,.0f}/s at {one.cpu:.0f} µs" for name, one in readings.items()))
    for name, each in series.items():
        cpu = {"µs": [one.cpu for one in each.ours], "µs aiohttp": [one.cpu for one in each.base]}
        company = {**each.company("requests/s", "aiohttp/s"), **cpu}
        session.figure(f"HTTP client alone: {name} / aiohttp", each.ratios(), beside=company)
