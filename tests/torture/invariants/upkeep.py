"""Afterwards everything adds up: counters, the feed, an empty queue, and no error that should never be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.torture.history import Entry
from tests.torture.invariants.facts import Facts, Violation

#: What a connection that was cut, a server that was killed or a disk that was full has to say for itself.
_HONEST = ("08", "57", "53", "58", "25", "55P03", "40001", "MZ")


#: Nanoseconds that a send may take, its own waits included; faults this near to it may have held it up.
PATIENCE = 3_000_000_000
NEAR = 3_000_000_000

#: What must be nowhere, by the names of `tables.places`.
_WRONG = {
    "placeless": "live messages have no place",
    "ghosts": "messages have a place and have ended",
    "twice": "messages have two places",
    "ended_twice": "messages have two ends",
    "wrong_ends": "rows of ends span too many ids, or count wrong",
    "hidden_runs": "runs lie below the head of their lane, or in a lane that says it is empty",
    "lines": "lines of the log cannot be folded",
}


def counters(facts: Facts) -> Iterator[Violation]:
    """Counters equal counted rows, tries are numbered without a gap."""
    for channel in facts.tables.channels:
        if channel.in_flight is not None and channel.in_flight != channel.leases:
            sentence = f"channel {channel.name} counts {channel.in_flight} in flight and has {channel.leases}"
            yield Violation("counters", channel.name, sentence)
        if channel.size is not None and channel.size != channel.messages:
            sentence = f"channel {channel.name} counts {channel.size} messages and has {channel.messages}"
            yield Violation("counters", channel.name, sentence)
    for row in facts.tables.ended:
        numbers = [one.attempt for one in facts.tries_by_id.get(row.id, ())]
        if sorted(set(numbers)) != list(range(1, row.num_attempts + 1)):
            sentence = f"message {row.id} ended after {row.num_attempts} attempts and has {numbers[:20]}"
            yield Violation("counters", row.id, sentence)
    yield from _places(facts)


def _places(facts: Facts) -> Iterator[Violation]:
    """Every live message is in one place, what there is in places is alive, and an end is written once and found."""
    places = facts.tables.places
    if not places:
        return
    for name, sentence in _WRONG.items():
        if places[name]:
            yield Violation("counters", name, f"{name}: {places[name]} {sentence}")
    for text in facts.tables.miscounted:
        yield Violation("counters", "pulse", f"the pulse differs from the tables: {text}")
    blocked = sum(dead.blocks_key for dead in facts.tables.dead)
    if places["keys_of_nobody"] != blocked:
        sentence = f"{places['keys_of_nobody']} ordering keys are held by messages that ended, {blocked} should be"
        yield Violation("counters", "keys", sentence)
    if places["guess"] < places["live"]:
        sentence = f"the depth is guessed as {places['guess']}, less than the {places['live']} there are"
        yield Violation("counters", "depth", sentence)


def feed(facts: Facts) -> Iterator[Violation]:
    """A reader of the feed gets each row once, and misses none."""
    there = {
        "archive": {(row.xid, row.id) for row in facts.tables.ended},
        "event_log": {(event.xid, event.id) for event in facts.tables.events},
    }
    got: dict[str, Counter[tuple[int, int]]] = {}
    for entry in facts.entries("feed"):
        got.setdefault(entry["table"], Counter())[int(entry["xid"]), entry["id"]] += 1
    for table, counted in got.items():
        for (xid, number), count in counted.items():
            if count > 1:
                yield Violation("feed", number, f"the feed gave row {number} of {table} {count} times")
            if (xid, number) not in there[table]:
                yield Violation("feed", number, f"the feed gave row {number} of {table}, xid {xid}, which is not there")
        for xid, number in sorted(there[table] - counted.keys()):
            yield Violation("feed", number, f"the feed never gave row {number} of {table}, xid {xid}")


def drained(facts: Facts) -> Iterator[Violation]:
    """The queue is empty in time after the last fault."""
    for row in facts.tables.left:
        yield Violation(
            "drained", row.id, f"message {row.id} ({row.ref}) of channel {row.channel} is still {row.status}"
        )
    bound = getattr(facts.plan, "drain_seconds", None)
    said = list(facts.entries("drained"))
    for entry in said[-1:]:
        if bound is not None and entry["seconds"] > bound:
            yield Violation("drained", "queue", f"it took {entry['seconds']:.1f} s to drain, {bound} s allowed")
    if not said and bound is not None:
        yield Violation("drained", "queue", f"the queue was not empty within {bound} s of the last fault")


def restored(facts: Facts) -> Iterator[Violation]:
    """A dump taken in mid-load and restored gives each of its live messages once, and nothing else."""
    wrong = {
        "left": "are live and never came",
        "twice": "came twice",
        "strangers": "came and had ended",
    }
    for entry in facts.entries("restored"):
        for name, sentence in wrong.items():
            if ids := entry[name]:
                yield Violation("restored", ids[0], f"dump {entry['file']}: messages {ids[:5]} {sentence}")
        if entry["places"] != "ok":
            yield Violation("restored", entry["file"], f"dump {entry['file']}: places are {entry['places']}")


def held_up(facts: Facts) -> Iterator[Violation]:
    """A transaction that a stranger leaves open holds up no sender. Sends beside other faults are not judged."""
    over = {entry["n"]: entry.at for entry in facts.entries("fault.over")}
    faults = [(entry.at, over.get(entry["n"], entry.at), entry["what"]) for entry in facts.entries("fault")]
    begun = {(entry.who, entry["op"]): entry for entry in facts.entries("send.begin")}
    for answer in facts.entries("send.ok"):
        begin = begun[answer.who, answer["op"]]
        near = [what for first, last, what in faults if first - NEAR <= answer.at and begin.at <= last + NEAR]
        beside = any(what == "stranger" and first <= answer.at and begin.at <= last for first, last, what in faults)
        if beside and set(near) == {"stranger"} and answer.at - begin.at > PATIENCE:
            seconds = (answer.at - begin.at) / 1e9
            yield Violation("held_up", answer.who, f"{answer.who} waited {seconds:.1f} s for a send beside a stranger")


def deadlock(facts: Facts) -> Iterator[Violation]:
    """Nobody is a deadlock's victim."""
    for entry in facts.entries("error"):
        if entry.get("sqlstate") == "40P01":
            yield Violation("deadlock", entry.who, _said(entry))


def internal_error(facts: Facts) -> Iterator[Violation]:
    """No error but those of a lost connection and those that are documented; no message that cannot be moved."""
    for entry in facts.entries("error"):
        state = entry.get("sqlstate")
        if state and state != "40P01" and not state.startswith(_HONEST):
            yield Violation("internal_error", entry.who, _said(entry))
    for event in facts.tables.events:
        if event.kind == "message.stuck":
            yield Violation("internal_error", int(event.name or 0), f"message {event.name} could not be moved")


def _said(entry: Entry) -> str:
    return f"{entry.who} was told {entry.get('sqlstate')} at {entry.get('where')}: {entry.get('text')}"
