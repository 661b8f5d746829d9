"""`python -m bench [section …] [--quick] [--dsn DSN]`: measure, print the table, exit with 1 if a target is missed."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time

from bench import report
from bench.crew import Crew
from bench.server import busy, circumstances, serve
from bench.session import L_CLIENTS, Session

SECTIONS = ("send", "batch", "drain", "depth", "held", "hot", "fair")


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("section", nargs="*", help=f"some of: {', '.join(SECTIONS)}; all when none is named")
    parser.add_argument("--quick", action="store_true", help="smaller and shorter, at most four minutes")
    parser.add_argument("--dsn", help="a superuser's DSN; databases named menzil_bench_… are made and removed there")
    given = parser.parse_args()
    for name in given.section:
        if name not in SECTIONS:
            parser.error(f"there is no section {name!r}; choose from {', '.join(SECTIONS)}")
    return given


def main() -> int:
    """Run the sections that were asked for."""
    given = arguments()
    sections = [name for name in SECTIONS if name in given.section] or list(SECTIONS)
    with serve(given.dsn) as server, Crew(L_CLIENTS) as crew:
        facts = circumstances(server)
        for line in facts.items():
            print("{}: {}".format(*line), flush=True)
        session = Session(server, crew, given.quick)
        others = []
        for name in sections:
            others.append(f"{name} {busy():.0%}")
            session.section = name
            session.say(f"begins; others use {others[-1].split()[1]} of the machine")
            importlib.import_module(f"bench.sections.{name}").run(session)
        facts["others used, before each section"] = ", ".join(others)
        facts["run"] = (
            f"{' '.join(sections)}{' --quick' if given.quick else ''}, {time.monotonic() - session.began:.0f} s"
        )
        facts["load average at the end"] = f"{os.getloadavg()[0]:.1f}"
    whole = len(sections) == len(SECTIONS) and not given.quick
    written = report.write(facts, session.figures, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()), keep=whole)
    print("\n" + report.markdown(facts, session.figures))
    print("written:", ", ".join(path.name for path in written))
    missed = [figure for figure in session.figures if figure.reached is False]
    print(f"{len(missed)} of {sum(figure.reached is not None for figure in session.figures)} targets not reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
