"""What handlers with a transaction of the worker's own have written: once for each message that was completed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tests.torture.invariants.facts import Violation
from tests.torture.tables import Tables

#: The channel whose handler writes an effect and ends its message in one transaction.
CHANNEL = "booked"
TABLE = "create table effect (id bigint not null)"
READ = "select coalesce(array_agg(id), '{}') from effect"


def violations(effects: Iterable[int], tables: Tables) -> Iterator[Violation]:
    """An effect too many, and one too few."""
    counted = Counter(effects)
    completed = {row.id for row in tables.ended if row.channel == CHANNEL and row.status == "completed"}
    for message, count in counted.items():
        if count > 1:
            yield Violation("two_ends", message, f"message {message} was completed with {count} effects")
        if message not in completed:
            yield Violation("two_ends", message, f"message {message} has an effect and was not completed")
    for message in sorted(completed - counted.keys()):
        yield Violation("undelivered", message, f"message {message} was completed without its effect")
