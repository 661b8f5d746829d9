"""Delivery to brokers: our protocols beside the loops that most people write, workers beside one with an empty handler,
a live endpoint beside a dead one, and a thousand endpoints at once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

import psutil

from bench import fill, machine, usage
from bench.brokers import Place, places
from bench.loads import publish
from bench.readings import Reading, Series
from bench.server import CHANNEL, connected
from bench.service import Service
from bench.session import Session

#: Rate of our protocol against the bare loop of the usual library.
AGAINST = {
    "kafka": ("confluent-kafka produce and flush, mock cluster", 0.45),
    "redis": ("redis-py pipeline", 0.8),
    "nats": ("nats-py publish_async", 0.7),
    "amqp": ("aiormq", 1.2),
    "mqtt": ("paho-mqtt", 1.2),
}
MESSAGES = {False: 60_000, True: 20_000}
WORKER, LIVE = 0.6, 0.9
DEAD = json.dumps({"host": "127.0.0.1", "port": 9, "stream": "nowhere"})  # no program listens there
CROWD = {False: 1000, True: 200}
IDLE = 30.0  # seconds after which a connection is closed
GROWTH = 1.5
EVERY = 0.2  # seconds between two looks at a backlog


def run(session: Session) -> None:
    """All parts, with the same brokers."""
    with places(*AGAINST, missing=session.say) as found:
        adapters(session, found)
        workers(session, {kind: found[kind] for kind in ("nats", "redis") if kind in found})
        if "redis" in found:
            beside_dead(session, found["redis"])
            crowd(session, found["redis"])


def adapters(session: Session, found: Mapping[str, Place]) -> None:
    """Batches of 500 with every acknowledgement waited for."""
    for kind, place in found.items():
        against, target = AGAINST[kind]
        series = Series()
        for repeat in session.repeat():
            loads = {"ours": publish.adapter, "bare": publish.bare}
            readings: dict[str, Reading] = {}
            for name in loads if repeat % 2 else reversed(loads):
                place.clear()
                pace = session.crew.run(loads[name], "", session.seconds, kind=kind, config=place.config)
                readings[name] = pace.reading()
            series.add(readings["ours"], readings["bare"])
            ours, bare = readings["ours"], readings["bare"]
            session.say(
                f"{kind}: {ours.rate:,.0f}/s at {ours.cpu:.0f} µs, bare {bare.rate:,.0f}/s at {bare.cpu:.0f} µs"
            )
        cpu = {"µs": [each.cpu for each in series.ours], "µs bare": [each.cpu for each in series.base]}
        company = {**series.company("messages/s", "bare/s"), **cpu}
        session.figure(f"protocol {kind} / {against}", series.ratios(), at_least=target, beside=company)


def workers(session: Session, found: Mapping[str, Place]) -> None:
    """A backlog drained by `menzil worker` to a broker, and by one whose handler does nothing."""
    dsn, count = session.server.database(), MESSAGES[session.quick]
    prepare(dsn, found)
    series = {kind: Series() for kind in found}
    seen: dict[str, list[Drain]] = {}
    ways = ["handler", *found]
    for repeat in session.repeat():
        for way in ways if repeat % 2 else reversed(ways):
            if way in found:
                found[way].clear()
            place = found.get(way)
            one = drain(dsn, [way if place else CHANNEL], count, handler=not place, broker=place.pid if place else None)
            seen.setdefault(way, []).append(one)
            session.crew.foreign.append(one.others)
            session.say(f"{way}: {one.rate:,.0f} messages/s, {one.told}")
        for kind, each in series.items():
            each.add(seen[kind][-1].reading(), seen["handler"][-1].reading())
    for kind, each in series.items():
        company = {
            **each.company("messages/s", "handler/s"),
            "µs worker": [one.worker for one in seen[kind]],
            "µs worker, handler": [one.worker for one in seen["handler"]],
            "µs server": [one.server for one in seen[kind]],
            "µs server, handler": [one.server for one in seen["handler"]],
            "µs broker": [one.broker for one in seen[kind]],
            "µs by the clock": [1e6 / one.rate for one in seen[kind]],
            "µs by the clock, handler": [1e6 / one.rate for one in seen["handler"]],
        }
        name = f"worker to {kind} / the same worker with an empty handler"
        session.figure(name, each.ratios(), at_least=WORKER, beside=company)
        session.figure(f"{name}, by CPU of worker and server", [each.by_cpu()], at_least=WORKER)


class Drain:
    """How a backlog went: the rate, and microseconds of processor time per message."""

    def __init__(self, count: int, seconds: float, spent: Sequence[float], others: float) -> None:
        """`spent` are the processor seconds of the worker, of PostgreSQL and of the broker."""
        self.rate, self.others = count / seconds, others
        self.worker, self.server, self.broker = (each / count * 1e6 for each in spent)

    @property
    def told(self) -> str:
        return f"µs: {self.worker:.0f} worker, {self.server:.0f} server, {self.broker:.0f} broker"

    def reading(self) -> Reading:
        return Reading(self.rate, self.worker + self.server)


def prepare(dsn: str, found: Mapping[str, Place]) -> None:
    """An endpoint for each broker, named as its protocol."""
    with connected(dsn) as conn:
        conn.execute("select menzil.set_setting('broker_allowed_networks', '127.0.0.0/8')")
        for kind, place in found.items():
            conn.execute("select menzil.create_endpoint(%s, %s, %s::jsonb)", (kind, kind, place.json))


def drain(dsn: str, channels: list[str], count: int, *, handler: bool = False, broker: int | None = None) -> Drain:
    """Send while the channels are paused, start a worker, resume them, wait until nothing is left of the first."""
    with connected(dsn) as conn:
        pause(conn, "pause", channels)
        fill.exactly(conn, channels[:1], count)
        for other in channels[1:]:
            fill.exactly(conn, [other], count // 10)
        conn.execute("checkpoint")
        server = usage.server_process(conn)
        with Service(dsn, app="bench.apps:nothing" if handler else None) as worker:
            times, spent = machine.times(), _spent(worker, server, broker)
            (began,) = conn.execute("select clock_timestamp()").fetchone() or (None,)
            pause(conn, "resume", channels)
            wait(conn, channels[0])
            used = [after - before for after, before in zip(_spent(worker, server, broker), spent, strict=True)]
            others = machine.others(times, sum(used))
        ended = "select extract(epoch from max(ended_at) - %s)::float8 from menzil.archive where channel = %s"
        (seconds,) = conn.execute(ended, (began, channels[0])).fetchone() or (0.0,)
        done = conn.execute("select count(*) from menzil.dlq").fetchone()
        if done != (0,):
            raise RuntimeError(f"{done} dead letters.")
    return Drain(count, seconds, used, others)


def _spent(worker: Service, server: psutil.Process | None, broker: int | None) -> tuple[float, float, float]:
    return worker.cpu(), usage.cpu(server), usage.cpu_of(broker) if broker else 0.0


def pause(conn: fill.Conn, what: str, channels: list[str]) -> None:
    """Pause or resume the channels by one statement."""
    conn.execute(f"select menzil.channel_{what}(name) from unnest(%s::text[]) name", (channels,))


def wait(conn: fill.Conn, channel: str, patience: float = 60.0) -> None:
    """Until no message of this channel is queued or leased; an error when nothing changes for long.

    It asks seldom: the question costs the server that is measured.
    """
    query = "select count(*) from menzil.queue where channel = %s"
    ends, seen = time.monotonic() + patience, -1
    while conn.execute("select exists (select from menzil.queue where channel = %s)", (channel,)).fetchone() == (True,):
        if time.monotonic() > ends:
            (left,) = conn.execute(query, (channel,)).fetchone() or (0,)
            if left == seen:
                raise RuntimeError(f"{left} messages to {channel} are left.")
            ends, seen = time.monotonic() + patience, left
        time.sleep(EVERY)


def beside_dead(session: Session, place: Place) -> None:
    """A live endpoint alone, and beside one that refuses every connection and has its own backlog."""
    series = Series()
    for repeat in session.repeat():
        found: dict[str, Drain] = {}
        for way in ("alone", "beside") if repeat % 2 else ("beside", "alone"):
            dsn = session.server.database()
            prepare(dsn, {"redis": place})
            channels = ["redis"]
            if way == "beside":
                with connected(dsn) as conn:
                    conn.execute("select menzil.create_endpoint('dead', 'redis', %s::jsonb)", (DEAD,))
                channels.append("dead")
            place.clear()
            found[way] = drain(dsn, channels, MESSAGES[session.quick])
            session.server.remove(dsn)
        series.add(found["beside"].reading(), found["alone"].reading())
        session.say(f"beside a dead one {found['beside'].rate:,.0f}/s, alone {found['alone'].rate:,.0f}/s")
    company = series.company("beside/s", "alone/s")
    session.figure("a live endpoint beside a dead one / alone", series.ratios(), at_least=LIVE, beside=company)


def crowd(session: Session, place: Place) -> None:
    """So many endpoints with one message each: connections while they are delivered and after IDLE seconds, memory."""
    dsn, count = session.server.database(), CROWD[session.quick]
    with connected(dsn) as conn:
        conn.execute("select menzil.set_setting('broker_allowed_networks', '127.0.0.0/8')")
        conn.execute(
            "select menzil.create_endpoint('e' || n, 'redis', %s::jsonb || jsonb_build_object('stream', 's' || n))"
            " from generate_series(1, %s) n",
            (place.json, count),
        )
        with Service(dsn) as worker:
            process, port = psutil.Process(worker.pid), place.config["port"]
            before, most = usage.megabytes(worker.pid), 0
            conn.execute("select menzil.send('e' || n, '1') from generate_series(1, %s) n", (count,))
            ends = time.monotonic() + 120
            while conn.execute("select exists (select from menzil.queue)").fetchone() == (True,):
                most = max(most, _connections(process, port))
                if time.monotonic() > ends:
                    raise RuntimeError("The messages are not delivered.")
            most = max(most, _connections(process, port))
            after = usage.megabytes(worker.pid)
            ends = time.monotonic() + IDLE + 10
            while (left := _connections(process, port)) and time.monotonic() < ends:
                time.sleep(0.5)
    session.figure(
        f"connections {IDLE + 10:.0f} s after {count:,} endpoints got a message each",
        [left],
        at_most=0,
        unit="",
        beside={"most": [most]},
    )
    session.figure(
        f"memory of a worker after {count:,} endpoints / before",
        [after / before],
        at_most=GROWTH,
        beside={"MB before": [before], "MB after": [after]},
    )


def _connections(process: psutil.Process, port: int) -> int:
    found = process.net_connections(kind="tcp")
    return sum(bool(each.raddr) and each.raddr.port == port for each in found)
