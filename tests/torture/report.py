"""Says what came of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.torture.checker import INVARIANTS
from tests.torture.runner import Outcome

MESSAGES = ("messages acknowledged", "send.ok", "send.unknown", "send.undone", "send.refused", "cancel.ok", "restored")
WORK = (
    "lease",
    "settle.ok",
    "settle.refused",
    "settle.unknown",
    "beat.ok",
    "beat.refused",
    "handle.begin",
    "hit",
    "stored",
    "feed",
    "message_next",
    "the long way",
    "months",
)


def lines(outcome: Outcome) -> Iterator[str]:
    """The report, line by line."""
    plan, counts = outcome.plan, outcome.counts
    yield f"seed {plan.seed}" + (f", mutant {plan.mutant}" if plan.mutant else "")
    for names in (MESSAGES, WORK):
        yield "  " + ", ".join(f"{name} {counts.get(name, 0)}" for name in names)
    yield f"  faults {sum(outcome.faults.values())}: " + ", ".join(f"{k} {n}" for k, n in outcome.faults.items())
    for name, why in outcome.skipped.items():
        yield f"  fault {name} left out: {why}"
    yield "  errors in the server's log by code: " + (
        ", ".join(f"{k} {n}" for k, n in outcome.errors.items()) or "none"
    )
    yield f"  drained in {outcome.drain:.1f} s, all in all {outcome.seconds:.0f} s"
    broken = Counter(violation.invariant for violation in outcome.violations)
    yield "  violations: " + ", ".join(f"{name} {broken[name]}" for name in INVARIANTS)
    for story in outcome.stories:
        yield ""
        yield story
    if len(outcome.violations) > len(outcome.stories):
        yield f"… and {len(outcome.violations) - len(outcome.stories)} more"
    yield f"seed {plan.seed}: " + ("no violation" if outcome.good else f"{len(outcome.violations)} violations")
