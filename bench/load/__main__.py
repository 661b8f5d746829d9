"""`python -m bench.load [lab …] [--quick] [--dsn DSN]`: put menzil under load, exit with 1 if a target is missed."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import time
import traceback

from bench import machine
from bench.crew import Crew
from bench.load.pages import Page, verdict
from bench.server import circumstances, serve
from bench.session import L_CLIENTS, Session

LABS = ("sustained", "held", "backlog", "channels")


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("lab", nargs="*", help=f"some of: {', '.join(LABS)}; all when none is named")
    parser.add_argument("--quick", action="store_true", help="small and short, at most two minutes: does it run?")
    parser.add_argument("--dsn", help="a superuser's DSN; databases named menzil_bench_… are made and removed there")
    given = parser.parse_args()
    for name in given.lab:
        if name not in LABS:
            parser.error(f"there is no lab {name!r}; choose from {', '.join(LABS)}")
    return given


def main() -> int:
    """Run the labs that were asked for."""
    given = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was made is removed then, too
    labs = [name for name in LABS if name in given.lab] or list(LABS)
    page = Page(keep=not given.quick)
    failed: list[str] = []
    with serve(given.dsn) as server, Crew(L_CLIENTS) as crew:
        facts = circumstances(server)
        session = Session(server, crew, given.quick)
        for name in labs:
            session.section = name
            session.say(f"begins; others use {machine.look():.0%} of the machine")
            try:
                importlib.import_module(f"bench.load.{name}").run(session, page)
            except Exception:  # what the other labs find is worth having
                traceback.print_exc()
                failed.append(name)
        lasted = time.monotonic() - session.began
    facts["run"] = (
        f"{' '.join(labs)}{' --quick' if given.quick else ''}, {lasted:.0f} s, {facts.pop('date')}, "
        f"load average {os.getloadavg()[0]:.1f} at the end"
    )
    if failed:
        facts["could not be measured"] = ", ".join(failed)
    page.write(facts, session.figures)
    for figure in session.figures:
        found = f"{figure.value:.3g} {figure.unit}{f', target {figure.target}' if figure.target else ''}"
        print(f"{verdict(figure).strip('*') or 'seen':8} {figure.section}: {figure.name}: {found}")
    print("written:", ", ".join(path.name for path in page.written))
    if failed:
        print(f"could not be measured: {', '.join(failed)}")
        return 2
    return 1 if any(figure.reached is False for figure in session.figures) else 0


if __name__ == "__main__":
    sys.exit(main())
