"""Judges a torture run: a pure function of what everybody wrote down and what the tables hold at the end.

A result that nobody heard of counts neither as success nor as failure. Leases, limits and schedules are judged by the
clock of the server, which also granted them; who was first of two senders by the monotonic clock of the histories.
What the words mean exactly: docs/explanation/guarantees.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.torture.history import Entry
from tests.torture.invariants import brokers, ends, leases, limits, order, sends, times, upkeep
from tests.torture.invariants.facts import Facts, Violation
from tests.torture.story import story
from tests.torture.tables import Tables

__all__ = ["INVARIANTS", "Violation", "story", "violations"]

Rule = Callable[[Facts], Iterator[Violation]]

INVARIANTS: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        sends.lost,
        sends.ghost,
        leases.two_leases,
        leases.two_settles,
        ends.two_ends,
        leases.stale_accepted,
        order.order,
        limits.concurrency,
        limits.rate,
        times.early,
        times.late,
        times.budget,
        upkeep.counters,
        ends.archived_once,
        upkeep.feed,
        upkeep.drained,
        upkeep.restored,
        upkeep.held_up,
        upkeep.deadlock,
        upkeep.internal_error,
        sends.idempotent,
        ends.undelivered,
        brokers.unstored,
        brokers.misplaced,
        brokers.renamed,
    )
}


def violations(history: Sequence[Entry], tables: Tables, plan: Any = None) -> list[Violation]:
    """Every broken promise, each said once, in the order of the rules."""
    facts = Facts(history, tables, plan)
    return list(dict.fromkeys(found for rule in INVARIANTS.values() for found in rule(facts)))
