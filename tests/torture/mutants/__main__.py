"""`python -m tests.torture.mutants`: all seeded bugs, one after the other; exit code 1 when one is not noticed."""

from __future__ import annotations

import argparse
import secrets
import sys

from tests.torture.mutants import MUTANTS
from tests.torture.mutants.hunt import TRIES, hunt, leave_alone, table


def main() -> int:
    """Hunt them, and print the table."""
    words = argparse.ArgumentParser(prog="python -m tests.torture.mutants", description=__doc__)
    words.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    words.add_argument("--only", help=f"only these, separated by commas: {', '.join(MUTANTS)}")
    words.add_argument("--tries", type=int, default=TRIES, help="runs before a mutant counts as unnoticed")
    words.add_argument("--sane", action="store_true", help="the same runs without the bugs; nothing may be found")
    words.add_argument("--stories", action="store_true", help="tell how each was noticed")
    given = words.parse_args()
    names = given.only.split(",") if given.only else list(MUTANTS)
    if unknown := set(names) - MUTANTS.keys():
        words.error(f"there is no mutant {', '.join(sorted(unknown))}")
    hunts = []
    for name in names:
        one = leave_alone(name, given.seed) if given.sane else hunt(name, given.seed, given.tries)
        hunts.append(one)
        said = ", ".join(f"{what} {count}" for what, count in one.found.most_common()) or "nothing"
        print(f"{name}: {said}; seeds {one.seeds}, {one.seconds:.0f} s", file=sys.stderr, flush=True)
        if given.stories:
            print(*one.stories[:3], "", sep="\n", file=sys.stderr, flush=True)
    print(*table(hunts), sep="\n")
    return 0 if all(not one.found if one.sane else one.caught for one in hunts) else 1


if __name__ == "__main__":
    sys.exit(main())
