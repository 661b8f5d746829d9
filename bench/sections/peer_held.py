"""Send and handle while one REPEATABLE READ transaction stays open, against the same without it.

Each queue works in two databases that take turns in slices, one with a snapshot held from beginning to end. Rows that
ended cannot be removed there: a queue that has to step over them gets slower with every slice.
"""

from __future__ import annotations

from contextlib import ExitStack
from statistics import mean

import psycopg

from bench.peers.contest import Contest
from bench.peers.player import Playing
from bench.peers.roster import OURS, Peer, roster
from bench.peers.standing import conclude
from bench.session import Session

SLICES = {False: (6, 2.0), True: (3, 0.5)}  # how many, and how many seconds each
HELD_TARGET = 0.8


def run(session: Session) -> None:
    """One queue after the other: what is compared is a queue with itself."""
    contest = Contest(session)
    rate = session.league.column("churn, snapshot held", "× L")
    whole = session.league.column("churn, snapshot held / free", "×")
    last = session.league.column("churn, held / free, last third", "×")
    calm = session.server.database()
    for peer in contest.turns(roster(session.home), 1):
        cycle = session.life_cycle(calm).rate
        rate.calibrate("L rows/s", cycle)

        def measure(peer: Peer = peer, cycle: float = cycle) -> None:
            held, free = slices(contest, peer, *SLICES[session.quick])
            late = max(1, len(held) // 3)
            for one in held[-late:]:
                rate.add(peer.name, one / cycle)
            for one, other in zip(held, free, strict=True):
                whole.add(peer.name, one / other)
            for one, other in zip(held[-late:], free[-late:], strict=True):
                last.add(peer.name, one / other)
            session.say(
                f"{peer.name}: held {mean(held):,.0f}/s, free {mean(free):,.0f}/s, last {held[-1] / free[-1]:.2f}"
            )

        contest.attempt(peer, measure)
    conclude(session, rate)
    for column in (whole, last):
        conclude(session, column, at_least=None)
        if values := column.values.get(OURS):
            session.figure(f"menzil: {column.name}", values, at_least=HELD_TARGET)


def slices(contest: Contest, peer: Peer, count: int, seconds: float) -> tuple[list[float], list[float]]:
    """Messages per second with the snapshot and without, slice by slice."""
    found: dict[str, list[float]] = {"held": [], "free": []}
    databases = {name: contest.database(peer) for name in found}
    with ExitStack() as stack:
        holder = stack.enter_context(psycopg.connect(databases["held"]))
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select count(*) from pg_class")
        command = [*peer.command(), "churn"]
        players = {name: stack.enter_context(Playing(command, dsn)) for name, dsn in databases.items()}
        for player in players.values():
            player.ready()
        for number in range(count):
            for name in found if number % 2 else reversed(found):
                players[name].say(f"{seconds}")
                told = players[name].told()
                found[name].append(max(told["units"], 1) / told["seconds"])
    for dsn in databases.values():
        contest.session.server.remove(dsn)
    return found["held"], found["free"]
