"""One contest: each entrant in databases of its own, in turn; who fails is left out with the reason."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import psycopg

from bench import machine, usage
from bench.peers.home import UnavailableError
from bench.peers.player import PlayerError, Playing, run
from bench.peers.roster import Peer, Way
from bench.readings import Reading
from bench.server import connected
from bench.session import Session

FEWEST = 100
_NEIGHBOURS = """
select count(*) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"""


@dataclass(frozen=True)
class Run:
    """How it went: the reading, microseconds of it in the entrant's own processes, what others used of the machine."""

    reading: Reading
    own: float
    others: float


class Contest:
    """What happens in one section; databases to be copied, and who is out, are the session's."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def turns(self, among: Iterable[Peer], repeat: int) -> Iterator[Peer]:
        """Those who are still in; who goes first changes."""
        order = [peer for peer in among if peer.name not in self.session.absent]
        return iter(order if repeat % 2 else order[::-1])

    def attempt(self, peer: Peer, measure: Callable[[], object]) -> None:
        """Measure; who cannot be had, or fails twice, is left out from now on, and it is said why."""
        try:
            measure()
        except (UnavailableError, PlayerError, OSError, ValueError, KeyError, psycopg.Error) as error:
            reason = (str(error).strip() or repr(error)).splitlines()[0][:200]
            if peer.name in self.session.failures or isinstance(error, UnavailableError):
                self.session.absent[peer.name] = reason
                self.session.say(f"{peer.name} is left out: {reason}")
            else:
                self.session.failures[peer.name] = reason
                self.session.say(f"{peer.name} failed this time: {reason}")

    def database(self, peer: Peer, count: int = 0) -> str:
        """A fresh database where it is installed and so many messages wait."""
        server, bases = self.session.server, self.session.bases
        if (peer.name, count) not in bases:
            if count:
                dsn = self.database(peer)
                run([*peer.command(), "fill", str(count)], dsn, before=peer.before)
            else:
                dsn = server.database(peer.before.sql if peer.before else None)
                run([*peer.command(), "install"], dsn, before=peer.before)
            with connected(dsn) as conn:
                conn.execute("vacuum analyze")  # no peer is to pay for what filling left to do
            bases[peer.name, count] = dsn
        return server.copy(bases[peer.name, count])

    def drain(self, peer: Peer, way: Way, messages: int) -> Run:
        """Fill and drain once."""
        count = max(FEWEST, int(messages * way.share))
        dsn = self.database(peer, count)
        command = list(way.command) or [*peer.command(), *way.words, str(count)]
        with connected(dsn) as conn, ThreadPoolExecutor(way.processes) as threads:
            conn.execute("checkpoint")  # nor for the checkpoint of another
            server = usage.server_process(conn)
            before, times, children = usage.cpu(server), machine.times(), _children()
            works = [
                threads.submit(run, command, dsn, hurried=way.hurried, before=peer.before) for _ in range(way.processes)
            ]
            told = [json.loads(lines[-1]) for lines in (work.result().strip().splitlines() for work in works) if lines]
            _wait_until_alone(conn)
            spent = usage.cpu(server) - before
            others = machine.others(times, spent + _children() - children)
            row = conn.execute(peer.left).fetchone()
        self.session.server.remove(dsn)
        worked = [each for each in told if each["handled"]]
        handled, left = sum(each["handled"] for each in worked), row[0] if row else -1
        if not worked or handled > count or left < count - handled or (left and handled == count):
            raise PlayerError(f"{peer.name} handled {handled} of {count} messages and left {left}.")
        seconds = max(each["ended"] for each in worked) - min(each["began"] for each in worked)
        own = sum(each["cpu"] for each in worked) / handled * 1e6
        return Run(Reading(handled / seconds, own + spent / handled * 1e6), own, others)

    def send(self, peer: Peer, verb: str, clients: tuple[int, ...], seconds: float) -> dict[int, Reading]:
        """Send for so many seconds, by each of these numbers of clients."""
        dsn = self.database(peer)
        found: dict[int, Reading] = {}
        with ExitStack() as stack:
            conn = stack.enter_context(connected(dsn))
            server = usage.server_process(conn)
            command = [*peer.command(), verb]
            players = [stack.enter_context(Playing(command, dsn)) for _ in range(max(clients))]
            for player in players:
                player.ready()
            for number in clients:
                times, before = machine.times(), usage.cpu(server)
                for player in players[:number]:
                    player.say(f"{seconds}")
                told = [player.told() for player in players[:number]]
                spent = usage.cpu(server) - before + sum(each["cpu"] for each in told)
                self.session.crew.foreign.append(machine.others(times, spent))
                units = sum(each["units"] for each in told)
                found[number] = Reading(sum(each["units"] / each["seconds"] for each in told), spent / units * 1e6)
        self.session.server.remove(dsn)
        return found


def _wait_until_alone(conn: psycopg.Connection[Any]) -> None:
    """Until the server processes of those who left have ended: then all of their time is counted."""
    ends = time.monotonic() + 2
    while conn.execute(_NEIGHBOURS).fetchone() != (0,) and time.monotonic() < ends:
        time.sleep(0.01)
    time.sleep(0.02)


def _children() -> float:
    """Processor seconds of processes that we started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
