"""Runs a mutant until somebody notices it, and makes a table of who noticed what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.torture.checker import INVARIANTS
from tests.torture.mutants import MUTANTS
from tests.torture.plan import Plan
from tests.torture.runner import run

#: Runs with other seeds before a mutant counts as unnoticed. A bug that needs a coincidence may miss it once.
TRIES = 4


@dataclass
class Hunt:
    """What the runs of a mutant found: seeds in the order of the runs, violations of the last, stories to read."""

    name: str
    seeds: list[int] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    stories: list[str] = field(default_factory=list)
    seconds: float = 0.0

    sane: bool = False  # the same runs without the bug

    @property
    def caught(self) -> bool:
        """Whether one of those noticed it who should."""
        return not self.found.keys().isdisjoint(MUTANTS[self.name].expected)


def hunt(name: str, seed: int, tries: int = TRIES) -> Hunt:
    """Run it with one seed after the other until it is caught."""
    result = Hunt(name)
    while not result.caught and len(result.seeds) < tries:
        result.seeds.append(seed + len(result.seeds))
        try:
            outcome = run(MUTANTS[name].planned(name, result.seeds[-1]))
        except AssertionError as error:  # somebody does not end: no verdict, and none is made up
            result.stories = [f"no verdict: {error}"]
            continue
        result.found = Counter(violation.invariant for violation in outcome.violations)
        result.stories = outcome.stories
        result.seconds += outcome.seconds
    return result


def leave_alone(name: str, seed: int) -> Hunt:
    """Make the run of a mutant without the bug: whatever is found then is no proof of anything."""
    plan = replace(MUTANTS[name].planned(name, seed), mutant=None, drain_seconds=Plan(seed).drain_seconds)
    outcome = run(plan)
    found = Counter(violation.invariant for violation in outcome.violations)
    return Hunt(name, [seed], found, outcome.stories, outcome.seconds, sane=True)


def table(hunts: Sequence[Hunt]) -> Iterator[str]:
    """The table in Markdown: a line for each mutant, a column for each promise that anybody saw broken."""
    broken = [name for name in INVARIANTS if any(hunt.found[name] for hunt in hunts)]
    yield _line("mutant", "seed", "runs", "seconds", *broken)
    yield "|" + "---|" * (4 + len(broken))
    for one in hunts:
        expected = MUTANTS[one.name].expected
        cells = [_cell(one.found[name], name in expected) for name in broken]
        name = one.name if one.sane or one.caught else f"**{one.name} survived**"
        yield _line(name, str(one.seeds[-1]), str(len(one.seeds)), f"{one.seconds:.0f}", *cells)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(count: int, expected: bool) -> str:
    if not count:
        return "–" if expected else ""
    return f"**{count}**" if expected else str(count)
