"""A backlog of small messages that need nothing done, drained by one process: menzil's worker and other queues."""

from __future__ import annotations

from bench.peers import entrants
from bench.peers.contest import Entrant, Run, measure
from bench.peers.home import Home, UnavailableError
from bench.readings import Series
from bench.session import Session

MESSAGES = {False: 100_000, True: 5_000}
REPEATS = {False: 3, True: 1}
OURS = entrants.menzil("menzil")
TUNED = entrants.menzil("menzil, tuned", "--concurrency", "500", "--batch", "1000")


def run(session: Session) -> None:
    """Each entrant in turn, each time in a database of its own."""
    with Home() as home:
        durable = [entrants.pgmq("delete"), entrants.pgmq("archive")]
        durable += [make(home) for make in (entrants.pgqueuer, entrants.graphile_worker)]
        # A worker of menzil waits for the disk when it leases and not when it settles. These never wait.
        reckless = [] if session.quick else [entrants.hurried(peer) for peer in durable[1:]]
        slow = [] if session.quick else [entrants.procrastinate(home)]
        peers = [*durable, *reckless, *slow]
        runs = contest(session, [OURS, TUNED, *peers])
    for peer in peers:
        for ours in (OURS, TUNED) if runs[peer.name] else ():
            series = Series([one.reading for one in runs[ours.name]], [one.reading for one in runs[peer.name]])
            company = {
                **series.company("messages/s", "peer/s"),
                "µs": [one.reading.cpu for one in runs[ours.name]],
                "of these in Python": [one.own for one in runs[ours.name]],
                "µs peer": [one.reading.cpu for one in runs[peer.name]],
                "of these in its process": [one.own for one in runs[peer.name]],
            }
            target = None if peer in reckless else 1.0
            session.figure(
                f"no-op messages, {ours.name} / {peer.name}", series.ratios(), at_least=target, beside=company
            )


def contest(session: Session, among: list[Entrant]) -> dict[str, list[Run]]:
    """What each achieved, repeat by repeat; nothing for those who cannot be had here."""
    runs: dict[str, list[Run]] = {entrant.name: [] for entrant in among}
    missing: set[str] = set()
    for repeat, _ in zip(range(REPEATS[session.quick]), session.repeat(), strict=False):
        for entrant in among if repeat % 2 else reversed(among):
            if entrant.name in missing:
                continue
            try:
                found = measure(entrant, session.server.database(), MESSAGES[session.quick])
            except UnavailableError as error:
                missing.add(entrant.name)
                session.say(f"{entrant.name} is left out: {error}")
                continue
            runs[entrant.name].append(found)
            session.crew.foreign.append(found.others)
            reading = found.reading
            session.say(
                f"{entrant.name}: {reading.rate:,.0f}/s, {reading.cpu:.0f} µs, of these {found.own:.0f} in its process"
            )
    return runs
