"""A message ends once, in one way, the way it was told, and somebody got it if it says so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.torture.invariants import brokers
from tests.torture.invariants.facts import Facts, Self, Violation, self_of, token

_OUTCOMES = {"complete": "completed", "defer": "deferred", "fail": "failed"}
_REFUSALS = ("404", "429", "500", "503")


def two_ends(facts: Facts) -> Iterator[Violation]:
    """One end per message, final, and the one that was acknowledged."""
    for message, rows in facts.ended_by_id.items():
        ways = sorted({row.status for row in rows})
        if len(ways) > 1:
            yield Violation("two_ends", message, f"message {message} ended as {ways}")
        if len(facts.rows_by_id[message]) > len(rows):
            yield Violation("two_ends", message, f"message {message} ended as {ways} and is in the queue")
        for one in facts.tries_by_id.get(message, ())[-1:]:
            if one.attempt > rows[0].num_attempts:
                sentence = f"message {message} was leased for attempt {one.attempt} after it had ended with"
                yield Violation("two_ends", message, f"{sentence} attempt {rows[0].num_attempts}")
    yield from _settled_otherwise(facts)
    yield from _cancelled_otherwise(facts)


def _settled_otherwise(facts: Facts) -> Iterator[Violation]:
    for entry in facts.entries("settle.ok"):
        if entry.get("fast"):
            continue  # it did not wait for the disk, and a crash may have undone it
        message, attempt, wanted = entry["id"], entry["attempt"], _OUTCOMES[entry["verb"]]
        there = [one.outcome for one in facts.tries_by_token.get((message, attempt), ())]
        if wanted not in there and "recovered" not in there:  # that one is stale_accepted
            sentence = f"attempt {attempt} of message {message} was accepted as {wanted}, the tables say {there}"
            yield Violation("two_ends", message, sentence)


def _cancelled_otherwise(facts: Facts) -> Iterator[Violation]:
    for entry in facts.entries("cancel.ok"):
        if not entry.get("answer"):
            continue
        ways = {row.status for row in facts.rows_by_id.get(entry["id"], ())}
        if ways - {"cancelled", "failed"}:  # cancelling a dead letter frees its ordering key
            yield Violation("two_ends", entry["id"], f"message {entry['id']} was cancelled and is {sorted(ways)}")


def archived_once(facts: Facts) -> Iterator[Violation]:
    """The archive has each ended message once, and each failed one has one dead letter."""
    ids: dict[Self, set[int]] = defaultdict(set)
    for message, rows in facts.ended_by_id.items():
        if len(rows) > 1:
            yield Violation("archived_once", message, f"message {message} is in the archive {len(rows)} times")
        dead = len(facts.dead_by_id.get(message, ()))
        if dead != (rows[0].status == "failed"):
            yield Violation("archived_once", message, f"message {message} is {rows[0].status} with {dead} dead letters")
    for message in facts.dead_by_id.keys() - facts.ended_by_id.keys():
        yield Violation("archived_once", message, f"message {message} is a dead letter and not in the archive")
    for row in facts.rows:
        if row.copy_of is None and row.idem is None:
            ids[self_of(row)].add(row.id)
    for which, numbers in ids.items():
        if len(numbers) > 1:
            subject = sorted(numbers)[1]
            yield Violation("archived_once", subject, f"{which[1]} was sent once and is messages {sorted(numbers)}")


def undelivered(facts: Facts) -> Iterator[Violation]:
    """What is completed was handled, received or settled by somebody, at that very attempt."""
    done = {token(entry) for entry in facts.entries("handle.end") if entry["outcome"] == "complete"}
    done |= {token(entry) for entry in facts.entries("settle.try") if entry["verb"] == "complete"}
    done |= {token(entry) for entry in facts.entries("hit") if entry["answer"] not in _REFUSALS}
    elsewhere = brokers.channels(facts)  # there `unstored` looks
    for row in facts.tables.ended:
        if row.status == "completed" and row.channel not in elsewhere and (row.id, row.num_attempts) not in done:
            sentence = f"message {row.id} ({row.ref}) is completed at attempt {row.num_attempts}, and nobody handled it"
            yield Violation("undelivered", row.id, sentence)
