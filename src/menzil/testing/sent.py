"""A message that was sent, and how it differs from one that a test wants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from menzil.model.errors import UsageError
from menzil.ops.records import Record

#: Seconds by which a time may differ from the one that was asked for.
TOLERANCE = 1.0


class _Any:
    """Any payload."""

    def __repr__(self) -> str:
        return "any payload"


ANY: Final = _Any()
MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Sent:
    """One message as the queue has it: waiting, in flight or ended."""

    id: int
    status: str
    channel: str
    payload: Any
    content: bytes | None
    priority: int
    ordering_key: str | None
    idempotency_key: str | None
    correlation_id: UUID | None
    headers: dict[str, str] | None
    metadata: dict[str, Any] | None
    created_at: datetime
    scheduled_at: datetime | None
    expires_at: datetime | None
    attempts: int
    retry_count: int
    last_error: str | None

    @classmethod
    def of(cls, record: Record) -> Sent:
        """Read a record of the queue."""
        return cls(*record.values())

    @property
    def body(self) -> Any:
        """The payload, or the content when bytes were sent."""
        return self.payload if self.content is None else self.content

    @property
    def delay(self) -> float:
        """Seconds from the send until it was due first."""
        return 0.0 if self.scheduled_at is None else (self.scheduled_at - self.created_at).total_seconds()

    @property
    def expires_in(self) -> float | None:
        """Seconds from the send until it expires."""
        return None if self.expires_at is None else (self.expires_at - self.created_at).total_seconds()


_WORDS = frozenset({field.name for field in fields(Sent)} | {"delay", "expires_in"}) - {"payload", "content", "channel"}
#: What is compared by containment: a send may say more than the test asks about.
_CONTAINED = frozenset({"headers", "metadata"})


def check_words(words: Mapping[str, Any]) -> None:
    """Refuse a word that no message has: it would never match, and a refute_sent would always pass."""
    for word in words:
        if word not in _WORDS:
            raise UsageError(f"A message has no {word!r}.", hint=f"ask about {', '.join(sorted(_WORDS))}")


def differences(sent: Sent, payload: Any, words: Mapping[str, Any]) -> list[str]:
    """How the message differs from what is wanted, each as a part of a sentence; nothing when it is like it."""
    found = [] if payload is ANY else list(_unlike("payload", payload, sent.body))
    for word, wanted in words.items():
        found.extend(_differs(word, wanted, getattr(sent, word)))
    return found


def _differs(word: str, wanted: Any, had: Any) -> Iterator[str]:
    if word in _CONTAINED and isinstance(wanted, Mapping):
        yield from _unlike(word, wanted, {} if had is None else had)
        return
    if word == "correlation_id" and isinstance(wanted, str):
        had = None if had is None else str(had)
        wanted = wanted.lower()
    if isinstance(wanted, timedelta):
        wanted = wanted.total_seconds()
    if word in ("delay", "expires_in") and isinstance(wanted, int | float) and had is not None:
        alike = abs(had - wanted) <= TOLERANCE
    elif isinstance(wanted, datetime) and isinstance(had, datetime):
        alike = abs((had - wanted).total_seconds()) <= TOLERANCE
    else:
        alike = bool(wanted == had)
    if not alike:
        yield f"{word} is {shown(had)}, not {shown(wanted)}"


def _unlike(place: str, wanted: Any, had: Any) -> Iterator[str]:
    """Objects by containment, lists element by element, everything else by ==, so that approx() and ANY work."""
    if isinstance(wanted, Mapping) and isinstance(had, Mapping):
        for key, value in wanted.items():
            if (name := str(key)) not in had:
                yield f"{place}.{name} is missing"
            else:
                yield from _unlike(f"{place}.{name}", value, had[name])
    elif isinstance(wanted, list | tuple) and isinstance(had, list):
        if len(wanted) != len(had):
            yield f"{place} has {len(had)} elements, not {len(wanted)}"
        for number, (one, other) in enumerate(zip(wanted, had, strict=False)):
            yield from _unlike(f"{place}[{number}]", one, other)
    # JSON keeps true and 1 apart, Python does not.
    elif _is_bool_beside_number(wanted, had) or not bool(wanted == had):
        yield f"{place} is {shown(had)}, not {shown(wanted)}"


def _is_bool_beside_number(one: Any, other: Any) -> bool:
    kinds = (type(one), type(other))
    return bool in kinds and (int in kinds or float in kinds)


def shown(value: Any, longest: int = 200) -> str:
    """A value for people, shortened."""
    text = str(value) if isinstance(value, UUID | datetime) else repr(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
