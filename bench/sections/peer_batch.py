"""A thousand messages at a time, through the public client of each queue."""

from __future__ import annotations

from bench.peers.contest import Contest
from bench.peers.roster import Peer, roster
from bench.peers.standing import conclude
from bench.session import Session

SECONDS = {False: 1.5, True: 0.4}
REPEATS = {False: 3, True: 1}


def run(session: Session) -> None:
    """Everybody in turn, the life cycle L beside each round."""
    contest, among = Contest(session), roster(session.home)
    column = session.league.column("batch of 1,000, 1 client", "× L")
    calm = session.server.database()
    for repeat, _ in zip(range(REPEATS[session.quick]), session.repeat(), strict=False):
        cycle = session.life_cycle(calm)
        column.calibrate("L rows/s", cycle.rate)
        for peer in contest.turns(among, repeat):

            def measure(peer: Peer = peer, cycle: float = cycle.rate) -> None:
                found = contest.send(peer, "batch", (1,), SECONDS[session.quick])[1]
                column.add(peer.name, found.rate / cycle, found.cpu)
                session.say(f"{peer.name}: {found.rate:,.0f}/s, {found.cpu:.0f} µs")

            contest.attempt(peer, measure)
    conclude(session, column)
