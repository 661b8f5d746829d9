"""Messages as people look for them and at them: lists, one message with all that is known, two side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from menzil.model.errors import UnknownNameError
from menzil.model.redact import Redactor
from menzil.ops import looking_messages, messages, why
from menzil.watch.compare import compare as compare_values
from menzil.watch.finding import Run
from menzil.watch.listing import search
from menzil.watch.redaction import redacted

__all__ = ["body", "compare", "compare_records", "compare_redaction", "compare_tries", "life", "one", "search", "waits"]

#: Fields of a message that two of them are compared by, besides their bodies.
COMPARED = (
    "status", "channel", "priority", "ordering_key", "idempotency_key", "correlation_id", "created_at", "scheduled_at",
    "expires_at", "ended_at", "num_attempts", "retry_count", "worker", "last_error", "redrive_of", "replay_of",
)  # fmt: skip
_BODIES = ("payload", "content", "headers", "metadata")


def one(run: Run, message_id: int, *, redactor: Redactor | None = None) -> dict[str, Any]:
    """Return a message with its body and {"attempts", "why", "life", "family"}."""
    found = redacted(body(run, message_id), redactor)
    tries = [redacted(row, redactor) for row in run(looking_messages.attempts(message_id))]
    return {
        **found,
        "attempts": tries,
        "why": waits(run, message_id, redactor=redactor)["why"],
        **{name: value for name, value in life(run, message_id, redactor=redactor).items() if name != "id"},
    }


def body(run: Run, message_id: int) -> dict[str, Any]:
    """A message with its body, live or ended; refuses an id that was never given out, or whose history is gone."""
    found = run(looking_messages.message(message_id))
    if found is None:
        run(messages.status(message_id))  # refuses an id that was never given out, and says what became of others
        raise UnknownNameError(f"Message {message_id} is not there any more.", hint="its history was cleaned up")
    return found


def waits(run: Run, message_id: int, *, redactor: Redactor | None = None) -> dict[str, Any]:
    """Return {"id", "why"}: reasons why it does not move, most decisive first."""
    return {"id": message_id, "why": [redacted(row, redactor) for row in run(why.message_why(message_id))]}


def life(run: Run, message_id: int, *, redactor: Redactor | None = None) -> dict[str, Any]:
    """Return {"id", "life", "family"}: what happened to it, its ancestors and its descendants, by time."""
    told = [redacted(row, redactor) for row in run(why.message_life(message_id))]
    return {"id": message_id, "life": told, "family": run(why.message_family(message_id))}


def compare(run: Run, a: int, b: int, *, redactor: Redactor | None = None) -> dict[str, Any]:
    """Return {"a", "b", "fields", "body"}: two messages, their fields aligned, their bodies by JSON path."""
    return compare_records(redacted(body(run, a), redactor), redacted(body(run, b), redactor), a, b)


def compare_tries(run: Run, message_id: int, a: int, b: int, *, redactor: Redactor | None = None) -> dict[str, Any]:
    """The same for two tries of one message; its parts are the responses."""
    tries = {row["attempt"]: redacted(row, redactor) for row in run(looking_messages.attempts(message_id))}
    for attempt in (a, b):
        if attempt not in tries:
            known = ", ".join(map(str, tries)) or "none"
            raise UnknownNameError(f"Message {message_id} has no try {attempt}.", hint=f"its tries are: {known}")
    names = ("outcome", "leased_at", "ended_at", "duration_ms", "status_code", "worker", "error")
    return {
        "a": a,
        "b": b,
        "fields": _fields(tries[a], tries[b], names),
        "body": {"response": compare_values(tries[a]["response"], tries[b]["response"])},
    }


def compare_redaction(run: Run, message_id: int, redactor: Redactor) -> dict[str, Any]:
    """A message as it is and as it is shown to people who may not see everything."""
    found = body(run, message_id)
    return compare_records(found, redacted(found, redactor), message_id, message_id)


def compare_records(one: Mapping[str, Any], other: Mapping[str, Any], a: int, b: int) -> dict[str, Any]:
    """Two messages that were read before."""
    bodies = {
        name: compare_values(one[name], other[name])
        for name in _BODIES
        if one[name] is not None or other[name] is not None
    }
    return {"a": a, "b": b, "fields": _fields(one, other, COMPARED), "body": bodies}


def _fields(one: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {"field": name, "equal": one[name] == other[name], "a": one[name], "b": other[name]}
        for name in names
        if one[name] is not None or other[name] is not None
    ]
