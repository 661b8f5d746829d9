"""What was acknowledged is there, what was taken back is not, and one key means one message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tests.torture.invariants.facts import Facts, Self, Send, Violation, self_of
from tests.torture.tables import Row


def lost(facts: Facts) -> Iterator[Violation]:
    """Every acknowledged send ended or is in the queue, under the id its sender was given."""
    for send in facts.sends:
        if send.state != "ok" or send.id is None:
            continue
        rows = facts.rows_by_id.get(send.id)
        if not rows:
            yield Violation("lost", send.id, f"message {send.id} ({send.ref}) was acknowledged and is nowhere")
        elif all(row.ref != send.ref for row in rows):
            sentence = f"id {send.id} was given for {send.ref} and is the message {rows[0].ref}"
            yield Violation("lost", send.id, sentence)
    yield from _halves(facts)


def _halves(facts: Facts) -> Iterator[Violation]:
    """A transaction whose answer never came happened as a whole or not at all."""
    there = {self_of(row) for row in facts.rows if row.copy_of is None}
    groups: dict[tuple[str, Any], list[Send]] = defaultdict(list)
    for send in facts.sends:
        if send.state == "unknown" and not send.idem:  # a key may have been taken by another transaction
            groups[send.who, send.op].append(send)
    for sends in groups.values():
        missing = [send.ref for send in sends if send.self not in there]
        if missing and len(missing) < len(sends):
            sentence = f"of {len(sends)} messages of one transaction {len(missing)} are missing: {missing[:5]}"
            yield Violation("lost", missing[0], sentence)


def ghost(facts: Facts) -> Iterator[Violation]:
    """Nothing that was rolled back or refused exists, or is given to anybody; nor what nobody ever sent."""
    for row in facts.rows:
        if row.copy_of is None:
            yield from _haunted(facts, row.ref, row.id, f"message {row.id} ({row.ref}) is {row.status}")
    for entry in facts.entries("lease", "handle.begin", "hit"):
        if (ref := entry.get("ref")) is not None:
            said = f"message {entry.get('id')} ({ref}) was given to {entry.who}"
            yield from _haunted(facts, ref, entry.get("id"), said)


def _haunted(facts: Facts, ref: str | None, number: int | None, said: str) -> Iterator[Violation]:
    subject = number if number is not None else str(ref)
    fate = facts.fate(ref)
    if fate == "unsent":
        yield Violation("ghost", subject, f"{said} and nobody sent it")
    elif fate == "undone":
        yield Violation("ghost", subject, f"{said} and its send was undone")


def idempotent(facts: Facts) -> Iterator[Violation]:
    """All who send the same key are given the same message while it lives and after it was completed.

    The key of a message that failed, expired or was cancelled is free: the next send makes another message.
    """
    rows: dict[Self, list[Row]] = defaultdict(list)
    for row in facts.rows:
        if row.idem and row.copy_of is None:
            rows[self_of(row)].append(row)
    for which, found in rows.items():
        ids = sorted({row.id for row in found})
        if any(not _is_free(facts, message) for message in ids[:-1]):
            yield Violation("idempotent", ids[1], f"key {which[2]} of channel {which[1]} has messages {ids}")
    for which, sends in facts.sends_of.items():
        given = sorted({send.id for send in sends if send.idem and send.state == "ok" and send.id is not None})
        if any(not _is_free(facts, message) for message in given[:-1]):
            sentence = f"who sent key {which[2]} of channel {which[1]} was given {given}"
            yield Violation("idempotent", given[1], sentence)


def _is_free(facts: Facts, message: int) -> bool:
    """Whether this message has let its key go by the end of the run."""
    return {row.status for row in facts.rows_by_id.get(message, ())} <= {"failed", "expired", "cancelled"}
