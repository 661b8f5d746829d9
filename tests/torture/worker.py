"""`python -m tests.torture.worker --mutant NAME [--] …`: `menzil worker …` with a bug in it."""

from __future__ import annotations

import sys

from menzil.cli.main import main
from tests.torture.mutants import MUTANTS


def launch(words: list[str]) -> None:
    """Put the bug in, and become the command."""
    option, name, *rest = words
    if option != "--mutant" or name not in MUTANTS:
        raise SystemExit(f"Give --mutant and one of {', '.join(MUTANTS)}.")
    if (patch := MUTANTS[name].worker) is not None:
        patch()
    sys.argv = ["menzil", "worker", *(rest[1:] if rest[:1] == ["--"] else rest)]
    main()


if __name__ == "__main__":
    launch(sys.argv[1:])
