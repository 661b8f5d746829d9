"""What 30 viewers of a console cost workers: messages per second and server CPU for a message, with them and without.

Turns of a few seconds, in which 30 viewers look at pages that refresh themselves or have their tabs hidden, while one
`menzil worker` drains a backlog. The server CPU for a message is that of the worker's own backends: waits for locks and
buffers would show there and in the rate. What the viewers' own questions cost the server stands beside it. The console
process and the viewers run with the lowest priority, as if they had other machines: only questions compete with the
worker. What each of the three took of a processor is told.

On two cores they are no other machines: they run between the worker's processes and on the same processors. So there
is a third kind of turn, in which the same viewers look at a twin of the database on the same server. It takes as much
of the machine and touches no table, lock or snapshot of the worker's database. What is lost there, too, is not lost by
the pages' questions; both are told, and the demand is on the first.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from bench import fill, looks, stock
from bench.seat import Seat, Viewers
from bench.server import CHANNEL, connected
from bench.service import Service
from bench.session import Session
from bench.stock import Conn, Size, one
from bench.usage import cpu, server_process

VIEWERS = 30
LEAST = 0.95
#: Whose database is looked at in a turn.
NOBODY, OWN, TWIN = "nobody", "own", "twin"
#: Rounds of turns, and the seconds of each turn.
TURNS = {False: 10, True: 1}
SECONDS = {False: 6.0, True: 1.0}
SIZES = {False: Size(200_000, 500_000, 20_000, 5_000, 48, 90), True: stock.QUICK}
#: More than a worker takes in a second; where one is faster after all, the turn is done again with a larger backlog.
FASTEST = 150_000
#: Seconds between the start of the worker and that of a turn: questions under way end, others begin.
AHEAD = 0.5
#: Times that a turn may end without a backlog, each with twice the backlog of the one before.
MOST_DRY = 4
#: Messages that end in a turn at least, or the worker stands still.
LEAST_ENDED = 100

_BACKENDS = """
select pid from pg_stat_activity
 where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
   and application_name <> 'menzil-console'"""
_CONSOLE = """
select pid from pg_stat_activity where datname = current_database() and application_name = 'menzil-console'"""
_PAUSE = "select count(menzil.channel_pause(%s::text || g)) from generate_series(0, %s - 1) g"
_ENDED = "select ended from menzil._told_totals()"
_DEPTH = "select sent - gone from menzil._told_totals()"
_BOTH = "select ended, sent - gone from menzil._told_totals()"


def run(session: Session) -> None:
    """One worker, one console, thirty viewers."""
    dsn = session.server.database()
    with connected(dsn) as conn:
        found = stock.build(conn, SIZES[session.quick])
        for name in ("c", "e"):  # these wait; the worker has the channel of its own
            conn.execute(_PAUSE, (name, stock.CHANNELS))
        resting = one(conn, _DEPTH)
        fill.backlog(conn, CHANNEL, round(FASTEST * (AHEAD + SECONDS[session.quick])))
        fill.settle(conn)
        conn.execute("vacuum analyze")
    twin = session.server.copy(dsn)
    pages = [(visit.url, visit.page.live) for visit in looks.visits(found) if _is_watched(visit)]
    with (
        connected(dsn) as conn,
        Seat(dsn, nice=19) as seat,
        Seat(twin, nice=19) as other,
        Service(dsn, "--concurrency", "100", app="bench.apps:nothing"),
    ):
        viewers, strangers = Viewers(seat.port, pages, VIEWERS), Viewers(other.port, pages, VIEWERS)
        try:
            turns(session, conn, {OWN: viewers, TWIN: strangers}, seat, resting)
        finally:
            viewers.end()
            strangers.end()
    wrong = [page for page in viewers.seen if page.status not in (200, 304) or 'class="trouble"' in page.text]
    spent = sorted(page.seconds * 1e3 for page in viewers.seen)
    session.say(f"{len(spent):,} requests, {sum(page.status == 304 for page in viewers.seen):,} of them 304")
    for page in wrong[:5]:
        session.say(f"   {page.status} {page.url} after {page.seconds:.2f} s: {page.text[:200]!r}")
    session.figure("pages with trouble", [len(wrong)], at_most=0, unit="pages", beside={"of": [len(spent)]})
    beside = {"median": [median(spent)], "slowest": [spent[-1]]}
    session.figure("p95 of a page for a viewer", [spent[len(spent) * 95 // 100]], unit="ms", beside=beside)
    session.server.remove(dsn)
    session.server.remove(twin)


def _is_watched(visit: looks.Visit) -> bool:
    return visit.page.path in ("/", "/channels", "/channels/{name}", "/messages", "/dead", "/workers", "/turns") and (
        visit.page.live > 0
    )


def turns(session: Session, conn: Conn, watching: dict[str, Viewers], seat: Seat, resting: int) -> None:
    """A turn of each kind in every round, and who goes first changes."""
    kinds = (NOBODY, OWN, TWIN)
    found: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in kinds}
    shares: dict[str, list[float]] = {"console": [], "its questions": [], "viewers": []}
    for number in range(TURNS[session.quick] + 1):
        for kind in kinds if number % 2 else kinds[::-1]:
            for whose, viewers in watching.items():
                (viewers.open if whose == kind else viewers.close)()
            before, began = parties(conn, seat, watching[OWN]), time.monotonic()
            measured = fed(conn, SECONDS[session.quick], resting)
            if number == 0:
                continue  # the first round fills caches
            found[kind].append(measured)
            if kind == OWN:
                took = time.monotonic() - began
                for name, spent_so_far in parties(conn, seat, watching[OWN]).items():
                    shares[name].append((spent_so_far - before[name]) / took)
    for viewers in watching.values():
        viewers.close()
    told(session, found)
    together = [sum(each) for each in zip(*shares.values(), strict=True)]
    session.figure(f"processors that {VIEWERS} viewers take, all together", together, unit="", beside=shares)


def told(session: Session, found: dict[str, list[tuple[float, float, float]]]) -> None:
    """What is left of the worker's rate, and of its messages for a second of the server's processors."""
    rates, costs, whole = ({kind: [one[place] for one in each] for kind, each in found.items()} for place in range(3))
    for kind, words, least in (
        (OWN, f"beside {VIEWERS} viewers", LEAST),
        (TWIN, f"beside {VIEWERS} viewers of a twin of the database", None),
    ):
        beside = {"with, a second": rates[kind], "without, a second": rates[NOBODY]}
        pairs = [one / other for one, other in zip(rates[kind], rates[NOBODY], strict=True)]
        session.figure(f"messages a second {words}", pairs, at_least=least, beside=beside)
        beside = {"with, µs": costs[kind], "without, µs": costs[NOBODY]}
        low = {one: sorted(costs[one])[len(costs[one]) // 4] for one in (kind, NOBODY)}
        name = f"messages for server CPU of the worker's backends {words}"
        session.figure(name, [low[NOBODY] / low[kind]], at_least=least, beside=beside)
    pairs = [other / one for one, other in zip(whole[OWN], whole[NOBODY], strict=True)]
    beside = {"with, µs": whole[OWN], "without, µs": whole[NOBODY]}
    session.figure("the same for all of the server, questions of the console included", pairs, beside=beside)


def parties(conn: Conn, seat: Seat, viewers: Viewers) -> dict[str, float]:
    """Processor seconds so far of the console's process, of its backends, and of the viewers."""
    pids = [pid for (pid,) in conn.execute(_CONSOLE).fetchall()]
    return {"console": seat.cpu(), "its questions": spent(pids), "viewers": viewers.cpu}


def fed(conn: Conn, seconds: float, resting: int) -> tuple[float, float, float]:
    """A turn whose backlog lasts to its end: the rate of one that ran dry would be that of the backlog."""
    wanted = round(FASTEST * (AHEAD + seconds))
    for _ in range(MOST_DRY):
        refill(conn, resting + wanted)
        time.sleep(AHEAD)
        if found := turn(conn, seconds, resting):
            return found
        wanted *= 2  # a worker faster than FASTEST, or a machine that slept longer than it was asked to
    raise RuntimeError(f"The worker emptied a backlog of {wanted // 2:,} messages before a turn of {seconds} s ended.")


def refill(conn: Conn, wanted: int) -> None:
    """Send until so many wait. The worker rests meanwhile: it takes about as fast as one connection sends."""
    conn.execute("select menzil.channel_pause(%s)", (CHANNEL,))
    if (left := one(conn, _DEPTH)) < wanted:
        fill.backlog(conn, CHANNEL, wanted - left)
    ended, ends = one(conn, _ENDED), time.monotonic() + 60
    conn.execute("select menzil.channel_resume(%s)", (CHANNEL,))
    while one(conn, _ENDED) < ended + LEAST_ENDED:
        if time.monotonic() > ends:
            raise RuntimeError("The worker does not go on after the pause of its channel.")
        time.sleep(0.01)


def turn(conn: Conn, seconds: float, resting: int) -> tuple[float, float, float] | None:
    """Messages a second, and microseconds of processor time of the worker's backends and of the whole server.

    None where the backlog did not last.
    """
    server = server_process(conn)
    pids = [pid for (pid,) in conn.execute(_BACKENDS).fetchall()]
    own, every, ended, began = spent(pids), cpu(server), one(conn, _ENDED), time.monotonic()
    time.sleep(seconds)
    ((now, depth),), took = conn.execute(_BOTH).fetchall(), time.monotonic() - began
    count = now - ended
    if depth <= resting:
        return None
    if count < LEAST_ENDED:
        raise RuntimeError("The worker stands still before a backlog.")
    return count / took, (spent(pids) - own) / count * 1e6, (cpu(server) - every) / count * 1e6


def spent(pids: list[int]) -> float:
    """Processor seconds of these processes so far."""
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9
