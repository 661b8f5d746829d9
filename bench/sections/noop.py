"""A backlog of messages that need nothing done, drained by `menzil worker`: this version beside 0.1.0."""

from __future__ import annotations

from dataclasses import replace

from bench.peers.contest import Contest
from bench.peers.roster import DEFAULT, OURS, TUNED, TWO, roster
from bench.readings import Series
from bench.session import NEW, OLD, Session

MESSAGES = {False: 40_000, True: 10_000}


def run(session: Session) -> None:
    """Both workers in turn, each time with a copy of the same backlog."""
    if OLD not in session.versions():
        return
    contest = Contest(session)
    ours = next(peer for peer in roster(session.home) if peer.name == OURS)
    sides = {NEW: ours, OLD: replace(ours, name=f"{OURS} {OLD}", before=session.before)}
    series = {way: Series() for way in (DEFAULT, TUNED, TWO)}
    for repeat in session.repeat():
        for way, each in series.items():
            found = {}
            for name in sides if repeat % 2 else reversed(sides):
                one = contest.drain(sides[name], sides[name].ways[way], MESSAGES[session.quick])
                session.crew.foreign.append(one.others)
                found[name] = one.reading
                session.say(
                    f"{name}, {way}: {one.reading.rate:,.0f}/s, {one.reading.cpu:.0f} µs, of these {one.own:.0f} worker"
                )
            each.add(found[NEW], found[OLD])
    for way, each in series.items():
        company = {**each.company("messages/s", "0.1.0/s"), "by the clock": each.ratios()}
        company["median by CPU"] = company.pop("by CPU")
        session.figure(f"no-op drain by a worker, {way} / 0.1.0, by CPU", [each.by_cpu()], beside=company)
