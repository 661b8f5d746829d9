"""What a broker holds at the end: all that is called delivered, in order, under one id."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.torture.invariants.facts import Facts, Violation
from tests.torture.tables import Row


def channels(facts: Facts) -> set[str]:
    """The channels whose messages go to a broker."""
    return {entry["channel"] for entry in facts.entries("broker.read")}


def unstored(facts: Facts) -> Iterator[Violation]:
    """What is completed is there, and what is there was sent."""
    held = {(entry["channel"], entry["id"]) for entry in facts.entries("stored")}
    for row in _completed(facts):
        if (row.channel, row.id) not in held:
            sentence = f"message {row.id} ({row.ref}) is completed, and {row.channel} does not have it"
            yield Violation("unstored", row.id, sentence)
    for entry in facts.entries("stored"):
        if not any(row.ref == entry["ref"] for row in facts.rows_by_id.get(entry["id"], ())):
            sentence = f"{entry['channel']} has message {entry['id']} ({entry['ref']}), which was never committed"
            yield Violation("unstored", entry["id"], sentence)


def misplaced(facts: Facts) -> Iterator[Violation]:
    """Messages of one ordering key stand in the order in which they ended, once repeats are dropped.

    One that did not end as completed may have been written by a try that was given up, at any time.
    """
    first: dict[int, int] = {}
    for entry in facts.entries("stored"):
        first[entry["id"]] = min(entry["place"], first.get(entry["id"], entry["place"]))
    lanes: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in _completed(facts):
        if row.key is not None and row.id in first:
            lanes[row.channel, row.key].append(row)
    for (channel, key), rows in lanes.items():
        last: Row | None = None
        for row in sorted(rows, key=lambda one: (one.first_leased_at or one.ended_at, one.id)):
            if last is not None and first[row.id] < first[last.id]:
                sentence = f"message {row.id} stands before {last.id} in {channel}, and came after it, key {key}"
                yield Violation("misplaced", row.id, sentence)
            last = row


def renamed(facts: Facts) -> Iterator[Violation]:
    """Every attempt has the same id, so a broker that drops repeats has each message once."""
    once = {entry["channel"]: entry["once"] for entry in facts.entries("broker.read")}
    seen: dict[tuple[str, int], list[str]] = defaultdict(list)
    for entry in facts.entries("stored"):
        seen[entry["channel"], entry["id"]].append(entry["wire_id"])
    for (channel, message), ids in seen.items():
        if len(set(ids)) > 1:
            yield Violation("renamed", message, f"message {message} has the ids {sorted(set(ids))} in {channel}")
        if once[channel] and len(ids) > 1:
            yield Violation("renamed", message, f"message {message} is {len(ids)} times in {channel}")


def _completed(facts: Facts) -> Iterator[Row]:
    ours = channels(facts)
    return (row for row in facts.tables.ended if row.channel in ours and row.status == "completed")
