"""From the call that sends to the handler of an idle worker, each a process of its own, message by message."""

from __future__ import annotations

import random
import time
from statistics import median, quantiles

from bench.peers.contest import Contest
from bench.peers.player import Playing
from bench.peers.roster import Peer, roster
from bench.peers.standing import conclude
from bench.sections.wake import bare
from bench.session import Session

MESSAGES = {False: 25, True: 4}
REPEATS = {False: 3, True: 1}
PAUSE = 0.1, 0.15  # seconds between two messages
WARM_UP = 3
PATIENCE = 15.0
SETTLED = 1.0  # seconds of silence


def run(session: Session) -> None:
    """Everybody in turn, with the settings that people begin with."""
    contest, among = Contest(session), [peer for peer in roster(session.home) if peer.awake]
    half = session.league.column("idle to handled, p50", "ms", more=False)
    most = session.league.column("idle to handled, p99", "ms", more=False)
    calm = session.server.database()
    every: dict[str, list[float]] = {}
    for repeat, _ in zip(range(REPEATS[session.quick]), session.repeat(), strict=False):
        half.calibrate("bare NOTIFY ms", median(bare(calm, MESSAGES[session.quick])))
        for peer in contest.turns(among, repeat):

            def measure(peer: Peer = peer) -> None:
                found = waits(contest, peer, MESSAGES[session.quick])
                half.add(peer.name, median(found))
                every.setdefault(peer.name, []).extend(found)
                session.say(f"{peer.name}: {median(found):.1f} ms, longest {max(found):.1f} ms")

            contest.attempt(peer, measure)
    for name, found in every.items():
        most.add(name, quantiles(found, n=100, method="inclusive")[98])
    conclude(session, half)
    conclude(session, most, at_least=None)


def waits(contest: Contest, peer: Peer, count: int) -> list[float]:
    """Milliseconds, message by message."""
    dsn = contest.database(peer)
    found: list[float] = []
    with Playing([*peer.command(), "work"], dsn) as worker, Playing([*peer.command(), "send"], dsn) as sender:
        worker.ready()
        sender.ready()
        worker.quiet(SETTLED)  # the sender's warm-up has been handled, too
        for _ in range(WARM_UP + count):
            time.sleep(random.uniform(*PAUSE))
            sender.say("one")
            sent = int(sender.hear(PATIENCE))
            found.append((int(worker.hear(PATIENCE)) - sent) / 1e6)
    contest.session.server.remove(dsn)
    return found[WARM_UP:]
