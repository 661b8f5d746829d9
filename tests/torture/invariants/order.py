"""Ordering keys: who was acknowledged before another one began is done before the other is delivered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from tests.torture.invariants.facts import Facts, Self, Send, Violation, self_of
from tests.torture.tables import Row

Lane = tuple[str, str]


def order(facts: Facts) -> Iterator[Violation]:
    """Judge the keys one by one."""
    lanes: dict[Lane, list[Row]] = defaultdict(list)
    for row in facts.rows:
        if row.key is not None:
            lanes[row.channel, row.key].append(row)
    for lane, rows in lanes.items():
        yield from _one_at_a_time(lane, rows)
        yield from _in_turn(lane, rows, facts)


def _one_at_a_time(lane: Lane, rows: Sequence[Row]) -> Iterator[Violation]:
    """From its first lease to its end a message has its key alone: a retry or a defer keeps it."""
    held: tuple[datetime, int] | None = None
    leased = [(row.first_leased_at, row) for row in rows if row.first_leased_at is not None]
    for begun, row in sorted(leased, key=lambda pair: (pair[0], pair[1].id)):
        if held is not None and begun < held[0]:
            sentence = f"message {row.id} was leased while {held[1]} held key {lane[1]} of channel {lane[0]}"
            yield Violation("order", row.id, sentence)
        if row.ended_at is not None and (held is None or row.ended_at > held[0]):
            held = row.ended_at, row.id


def _in_turn(lane: Lane, rows: Sequence[Row], facts: Facts) -> Iterator[Violation]:
    """Sweep over begins and acknowledgements; whoever is scheduled joins its key when due, so it is left out."""
    row_of: dict[Self, Row] = {self_of(row): row for row in rows if row.copy_of is None}
    steps: list[tuple[int, int, Send, Row]] = []
    for which, row in row_of.items():
        sends = facts.sends_of.get(which, ())
        if len(sends) != 1 or sends[0].later:  # which of several sends of one idempotency key made it is unknown
            continue
        steps.append((sends[0].begun, 0, sends[0], row))
        if sends[0].acked is not None:
            steps.append((sends[0].acked, 1, sends[0], row))
    latest: tuple[datetime, int] | None = None  # the last end among those acknowledged so far
    for _, is_ack, _, row in sorted(steps, key=lambda step: step[:2]):
        if is_ack:
            if row.ended_at is not None and (latest is None or row.ended_at > latest[0]):
                latest = row.ended_at, row.id
        elif latest is not None and row.first_leased_at is not None and row.first_leased_at < latest[0]:
            sentence = f"message {row.id} was leased before {latest[1]} ended, which was sent before it, key {lane[1]}"
            yield Violation("order", row.id, f"{sentence} of channel {lane[0]}")
