"""`python -m bench [section …] [--quick] [--dsn DSN]`: measure, print the table, exit with 1 if a target is missed."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import time
import traceback
from statistics import median

from bench import kept, machine, report
from bench.before import Before, NoHistoryError
from bench.crew import Crew
from bench.peers import page
from bench.server import circumstances, serve
from bench.session import L_CLIENTS, Session

SECTIONS = (
    "send", "batch", "drain",
    "counts", "calls", "lanes", "lives",
    "depth", "held", "hot", "fair", "plans", "deliver", "brokers", "wake", "memory", "noop",
    "console_cost", "console_viewers", "console_locked", "watch_cost",
    "peer_send", "peer_batch", "peer_drain", "peer_latency", "peer_held",
    "spark_read",
    "spark_write",
    "spark_export",
)  # fmt: skip
PEERS = tuple(name for name in SECTIONS if name.startswith("peer_"))
GROUPS = {
    "peers": PEERS,
    "console": ("console_cost", "console_viewers", "console_locked", "watch_cost"),
    "engine": ("drain", "counts", "calls", "lanes", "lives", "hot", "noop", "deliver"),  # what stands beside 0.1.0
}


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "section",
        nargs="*",
        help=f"some of: {', '.join(SECTIONS)}, or console, engine, peers; all when none is named",
    )
    parser.add_argument("--quick", action="store_true", help="smaller and shorter, some fifteen minutes")
    parser.add_argument("--dsn", help="a superuser's DSN; databases named menzil_bench_… are made and removed there")
    parser.add_argument(
        "--patience", type=float, metavar="SECONDS", help="how long to wait, in all, for a quiet machine (60; quick: 5)"
    )
    parser.add_argument(
        "--beside", metavar="COMMIT", help="only compare send, drain and delivery with this commit, by CPU"
    )
    parser.add_argument(
        "--keep", action="store_true", help="put what these sections find into the page of figures; a whole run does"
    )
    given = parser.parse_args()
    if given.keep and (given.quick or given.beside):
        parser.error("only figures at full size are kept: leave out --quick and --beside")
    if given.beside and given.section:
        parser.error("--beside is a section of its own: name no other")
    if given.beside:
        given.beside_tree = Before(given.beside)
        try:
            given.beside_tree.tree  # noqa: B018
        except NoHistoryError as error:
            parser.error(str(error))
    given.section = [name for word in given.section for name in GROUPS.get(word, (word,))]
    for name in given.section:
        if name not in SECTIONS:
            parser.error(f"there is no section {name!r}; choose from {', '.join(SECTIONS)}")
    if given.patience is None:
        given.patience = 5 if given.quick else 60
    return given


def main() -> int:
    """Run the sections that were asked for."""
    given = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was made is removed then, too
    sections = [name for name in SECTIONS if name in given.section] or list(SECTIONS)
    sections = ["beside"] if given.beside else sections
    with serve(given.dsn) as server, Crew(L_CLIENTS) as crew:
        facts = circumstances(server)
        for line in facts.items():
            print("{}: {}".format(*line), flush=True)
        session = Session(server, crew, given.quick, given.patience)
        session.beside = given.beside_tree if given.beside else None
        others: dict[str, str] = {}
        failed: list[str] = []
        for name in sections:
            session.section = name
            session.say(f"begins; others use {machine.look():.0%} of the machine")
            crew.foreign.clear()
            try:
                importlib.import_module(f"bench.sections.{name}").run(session)
            except Exception:  # what the other sections find is worth having
                traceback.print_exc()
                failed.append(name)
                continue
            others[name] = f"{median(crew.foreign):.0%}" if crew.foreign else ""
        shares = ", ".join(f"{name} {share}" for name, share in others.items() if share)
        facts["others used of the machine, median of the measurements"] = shares
        asked = [*sections, *([given.beside] if given.beside else []), *(["--quick"] if given.quick else [])]
        facts["run"] = f"{' '.join(asked)}, {time.monotonic() - session.began:.0f} s"
        facts["load average at the end"] = f"{os.getloadavg()[0]:.1f}"
    written = report.write(facts, session.figures, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    if given.keep or (len(sections) == len(SECTIONS) and not given.quick):
        written += kept.keep(facts, session.figures, others, SECTIONS)
    if session.league.columns:
        complete = not given.quick and set(PEERS) <= set(sections)
        written += page.write(session.league, facts, session.absent, session.home.versions, keep=complete)
    print("\n" + report.markdown(facts, session.figures))
    print("written:", ", ".join(path.name for path in written))
    missed = [figure for figure in session.figures if figure.reached is False]
    print(f"{len(missed)} of {sum(figure.reached is not None for figure in session.figures)} targets not reached")
    if failed:
        print(f"could not be measured: {', '.join(failed)}")
        return 2
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
