"""One message, one commit, through the public client of each queue, by one client and by four."""

from __future__ import annotations

from bench.loads import bare
from bench.payloads import small
from bench.peers.contest import Contest
from bench.peers.roster import Peer, roster
from bench.peers.standing import conclude
from bench.readings import Reading
from bench.session import Session

CLIENTS = (1, 4)
SECONDS = {False: 1.5, True: 0.4}
REPEATS = {False: 3, True: 1}


def run(session: Session) -> None:
    """Everybody in turn; bare INSERTs of the same payload beside each round."""
    contest, among = Contest(session), roster(session.home)
    columns = {
        clients: session.league.column(f"send, {clients} client{'s' if clients > 1 else ''}", "× bare INSERT")
        for clients in CLIENTS
    }
    calm = session.server.database()
    seconds = SECONDS[session.quick]
    for repeat, _ in zip(range(REPEATS[session.quick]), session.repeat(), strict=False):
        inserts: dict[int, Reading] = {}
        for clients in CLIENTS:
            pace = session.crew.run(bare.insert, calm, seconds, workers=clients, body=small(0))
            inserts[clients] = pace.reading()
            columns[clients].calibrate("INSERT/s", pace.rate)
        for peer in contest.turns(among, repeat):

            def measure(peer: Peer = peer, inserts: dict[int, Reading] = inserts) -> None:
                for clients, found in contest.send(peer, "send", CLIENTS, seconds).items():
                    columns[clients].add(peer.name, found.rate / inserts[clients].rate, found.cpu)
                    session.say(f"{peer.name}, {clients} clients: {found.rate:,.0f}/s, {found.cpu:.0f} µs")

            contest.attempt(peer, measure)
    for column in columns.values():
        conclude(session, column, at_least=2.0)
