"""`python -m tests.torture --seed N --sends 5000 --faults 40`: one run; exit code 1 when a promise was broken."""

from __future__ import annotations

import argparse
import ctypes
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

from tests.torture.plan import FAULTS, Plan
from tests.torture.report import lines
from tests.torture.runner import run

CLONE_NEWNS = 0x00020000


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    words.add_argument("--seed", type=int, default=int(os.environ.get("MENZIL_SEED") or secrets.randbelow(10**9)))
    words.add_argument("--sends", type=int, default=5000, help="acknowledged messages")
    words.add_argument("--faults", type=int, default=40)
    words.add_argument("--gap", type=float, default=0.75, help="seconds from one fault to the next, about")
    words.add_argument("--mutant", help="break the queue in this way first")
    words.add_argument("--faults-only", help=f"only these, separated by commas: {', '.join(FAULTS)}")
    words.add_argument("--keep", type=Path, help="leave histories and logs in this directory")
    given = words.parse_args()
    kinds = tuple(given.faults_only.split(",")) if given.faults_only else None
    if unknown := set(kinds or ()) - FAULTS.keys():
        words.error(f"there is no fault {', '.join(sorted(unknown))}")
    plan = Plan(given.seed, given.sends, given.faults, given.mutant, kinds, gap=given.gap)
    if given.mutant:
        from tests.torture.mutants import MUTANTS

        if given.mutant not in MUTANTS:
            words.error(f"there is no mutant {given.mutant}; choose one of {', '.join(MUTANTS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is taken down
    print(f"seed {plan.seed}: {plan.sends} sends, {plan.faults} faults", flush=True)
    outcome = run(plan, keep=given.keep, disk=own_mounts(), say=lambda text: print(text, flush=True))
    print(*lines(outcome), sep="\n", flush=True)
    return 0 if outcome.good else 1


def own_mounts() -> bool:
    """Leave the machine's mounts for some of our own, which end with us."""
    if os.geteuid() != 0 or ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        return False
    return subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
