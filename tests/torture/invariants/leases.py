"""One lease at a time, one settle for each, and none that came too late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

from tests.torture import effects
from tests.torture.history import Entry
from tests.torture.invariants.facts import Facts, Token, Violation, token


def two_leases(facts: Facts) -> Iterator[Violation]:
    """The leases of a message follow each other, each token is given out once, none is taken back before its time.

    By the clock of the server: a worker that was stopped may well go on handling what it does not hold any more.
    """
    for message, tries in facts.tries_by_id.items():
        for first, second in pairwise(tries):
            if second.leased_at < first.ended_at:
                sentence = f"message {message} was leased for attempt {second.attempt} before {first.attempt} ended"
                yield Violation("two_leases", message, sentence)
    for row in facts.tables.left:
        for one in facts.tries_by_id.get(row.id, ())[-1:]:
            if row.leased_at is not None and row.leased_at < one.ended_at:
                yield Violation("two_leases", row.id, f"message {row.id} is leased since before its last try ended")
    for kind in ("lease", "handle.begin"):
        for (message, attempt), count in _given(list(facts.entries(kind))).items():
            if count > 1:
                yield Violation(
                    "two_leases", message, f"attempt {attempt} of message {message} was given {count} times"
                )
    yield from _cut_short(facts)


def _given(entries: list[Entry]) -> Counter[Token]:
    """How often each token was given out.

    A handler with a transaction runs again when the database says that its transaction met another one: by design, and
    in the same life of its worker, so each life counts once. Its effects are counted by `effects`.
    """
    once = {(token(entry), entry.who) for entry in entries if entry.get("channel") == effects.CHANNEL}
    given = Counter(token(entry) for entry in entries if entry.get("channel") != effects.CHANNEL)
    given.update(which for which, _ in once)
    return given


def _cut_short(facts: Facts) -> Iterator[Violation]:
    usual = getattr(facts.plan, "worker_lease", 0.0) * 1000  # of those who do not say for how long they leased
    for entry in facts.entries("lease", "handle.begin"):
        promised = entry.get("lease_ms") or usual
        for one in facts.tries_by_token.get(token(entry), ()):
            lasted = one.ended_at - one.leased_at
            if one.outcome == "recovered" and lasted < timedelta(milliseconds=promised):
                sentence = f"attempt {one.attempt} of message {one.id} was taken back after {lasted}"
                yield Violation("two_leases", one.id, f"{sentence}, it was leased for {promised:g} ms")


def two_settles(facts: Facts) -> Iterator[Violation]:
    """At most one accepted settle of a lease."""
    for (message, attempt), count in Counter(token(entry) for entry in facts.entries("settle.ok")).items():
        if count > 1:
            sentence = f"attempt {attempt} of message {message} was settled {count} times"
            yield Violation("two_settles", message, sentence)
    for (message, attempt), tries in facts.tries_by_token.items():
        if len(tries) > 1:
            ends = [one.outcome for one in tries]
            yield Violation("two_settles", message, f"attempt {attempt} of message {message} ended as {ends}")


def stale_accepted(facts: Facts) -> Iterator[Violation]:
    """A settle or heartbeat is refused once its lease is over: taken back, or followed by another one."""
    seen: dict[int, list[tuple[int, int]]] = {}  # when which attempt of a message was known to be leased
    for entry in facts.entries("lease", "handle.begin"):
        seen.setdefault(entry["id"], []).append((entry["attempt"], entry.at))
    tried: dict[tuple[str, Token, str], list[int]] = {}
    for entry in facts.entries("settle.try"):
        tried.setdefault((entry.who, token(entry), entry["verb"]), []).append(entry.at)
    unheard = {token(entry) for entry in facts.entries("settle.unknown")}  # so who settled it is not known either
    for entry in facts.entries("settle.ok", "beat.ok"):
        message, attempt = token(entry)
        what = entry.get("verb") if entry.kind == "settle.ok" else "heartbeat"
        begun = [at for at in tried.get((entry.who, (message, attempt), str(what)), ()) if at <= entry.at]
        if entry.get("stale") and (message, attempt) not in unheard:
            why = "was known to be stale"
        elif entry.kind == "settle.ok" and _taken_back(facts, entry):
            why = "had been taken back"
        elif begun and any(other > attempt and when < begun[-1] for other, when in seen.get(message, ())):
            why = "had a successor"
        else:
            continue
        sentence = f"a {what} of attempt {attempt} of message {message} was accepted though its lease {why}"
        yield Violation("stale_accepted", message, sentence)


def _taken_back(facts: Facts, entry: Entry) -> bool:
    tries = facts.tries_by_token.get(token(entry), ())
    return bool(tries) and all(one.outcome == "recovered" for one in tries)
