"""A backlog of small messages that need nothing done, drained by the worker of each queue."""

from __future__ import annotations

from bench.peers.contest import Contest
from bench.peers.roster import DEFAULT, HURRIED, OURS, TUNED, TWO, Peer, roster
from bench.peers.standing import conclude
from bench.session import Session

MESSAGES = {False: 40_000, True: 4_000}
REPEATS = {False: 3, True: 1}
WAYS = {False: (DEFAULT, TUNED, TWO, HURRIED), True: (DEFAULT, TUNED, TWO)}


def run(session: Session) -> None:
    """Everybody in turn, each time in a database of its own; L beside each round."""
    contest, among = Contest(session), roster(session.home)
    columns = {way: session.league.column(f"drain, {way}", "× L") for way in WAYS[session.quick]}
    calm = session.server.database()
    for repeat, _ in zip(range(REPEATS[session.quick]), session.repeat(), strict=False):
        for name, column in columns.items():
            cycle = session.life_cycle(calm)
            column.calibrate("L rows/s", cycle.rate)
            for peer in contest.turns(among, repeat):

                def measure(name: str = name, peer: Peer = peer, cycle: float = cycle.rate) -> None:
                    # Without waiting for the disk menzil is the same as tuned: it has no such way.
                    way = peer.ways.get(TUNED if name == HURRIED and peer.name == OURS else name)
                    if way is None:
                        return
                    found = contest.drain(peer, way, MESSAGES[session.quick])
                    columns[name].add(peer.name, found.reading.rate / cycle, found.reading.cpu)
                    session.crew.foreign.append(found.others)
                    session.say(
                        f"{peer.name}, {name}: {found.reading.rate:,.0f}/s, {found.reading.cpu:.0f} µs, of these "
                        f"{found.own:.0f} in its own processes"
                    )

                contest.attempt(peer, measure)
    for name, column in columns.items():
        # That goes further than menzil does, and has no target.
        conclude(session, column, at_least=None if name == HURRIED else 1.0)
