"""The search line: `channel:billing status:failed since:2h error:"timed out"`, read or refused with the nearest word.

A number alone is an id, a UUID alone a correlation id. A value with spaces stands in quotes, where `\\"` is a quote.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from menzil.model.errors import UsageError
from menzil.model.times import duration, when
from menzil.ops.looking_messages import STATUSES

#: What each qualifier asks for, as help and suggestions show it.
QUALIFIERS = {
    "channel": "of this channel or endpoint",
    "status": f"one of {', '.join(STATUSES)}; several with commas",
    "key": "with this ordering key",
    "idem": "with this idempotency key",
    "corr": "with this correlation id",
    "id": "with this id; several with commas",
    "before": "with an id below this one",
    "since": "created at this time or later: 2h, 2026-01-31, 2026-01-31T12:00",
    "until": "created before this time",
    "error": "whose last error contains this text",
}
#: Other words that people type for them.
_ALSO = {
    "endpoint": "channel", "queue": "channel", "state": "status", "is": "status", "ordering_key": "key",
    "ordering": "key", "idempotency_key": "idem", "idempotency": "idem", "correlation_id": "corr",
    "correlation": "corr", "message": "id", "after": "since", "from": "since", "to": "until",
    "last_error": "error", "cause": "error",
}  # fmt: skip

_MOST_IDS = 100
_TERM = re.compile(
    r"""\s*(?:(?P<name>[^\s:"]+):)?(?:"(?P<quoted>(?:[^"\\]|\\.)*)(?P<end>"?)|(?P<plain>[^\s"]*))""", re.DOTALL
)
_HINT = "Qualifiers are " + " ".join(f"{name}:" for name in QUALIFIERS)
_UUID = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Search:
    """What is sought; None is not asked for. Times are points in time or distances from now."""

    channel: str | None = None
    status: tuple[str, ...] | None = None
    key: str | None = None
    idem: str | None = None
    corr: UUID | None = None
    id: tuple[int, ...] | None = None
    before: int | None = None
    since: datetime | timedelta | None = None
    until: datetime | timedelta | None = None
    error: str | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))

    def at(self, now: datetime) -> Search:
        """The same with points in time in place of distances."""
        return replace(self, since=_moment(self.since, now), until=_moment(self.until, now))

    def line(self) -> str:
        """The search as a line that parse() reads as the same search."""
        return " ".join(f"{name}:{_quote(text)}" for name, text in self.asked().items())

    def asked(self) -> dict[str, str]:
        """What is asked for, by qualifier."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _shown(value) for name, value in found.items() if value is not None}


def parse(line: str) -> Search:
    """Read a search line; an empty one asks for everything."""
    found: dict[str, Any] = {}
    place, line = 0, line.strip()
    while place < len(line):
        term = _TERM.match(line, place)
        assert term is not None, "a term may be empty, so it always matches"
        if term["quoted"] is not None and not term["end"]:
            raise UsageError("A quote is not closed.", hint='write error:"two words"')
        if term.end() == place or not (term["name"] or term["plain"] or term["quoted"] is not None):
            raise UsageError(f"{line[place:]!r} cannot be read.", hint=_HINT)
        place = term.end()
        text = term["plain"] if term["quoted"] is None else re.sub(r"\\(.)", r"\1", term["quoted"], flags=re.DOTALL)
        name = _qualifier(term["name"], text)
        if name in found:
            raise UsageError(f"{name}: is given twice.", hint="give it once")
        found[name] = _read(name, text)
    return Search(**found)


def as_typed(word: str) -> str:
    """A word of a command line as part of a search line: a shell has taken the quotes of error:"two words" away."""
    name, colon, value = word.partition(":")
    return f"{name}:{_quote(value)}" if colon and value and not value.startswith('"') else word


def suggestions(line: str, channels: list[str] | None = None) -> list[str]:
    """Return what may come next where a line ends: qualifiers, statuses, names of channels."""
    start = max(line.rfind(" ") + 1, 0)
    head, word = line[:start], line[start:]
    name, colon, value = word.partition(":")
    if not colon:
        return [f"{head}{one}:" for one in QUALIFIERS if one.startswith(word.lower()) and f"{one}:" not in head]
    known = {"status": list(STATUSES), "channel": channels or [], "since": ["15m", "1h", "6h", "1d", "7d"]}
    return [f"{head}{name}:{_quote(one)}" for one in known.get(name.lower(), []) if one.startswith(value)][:20]


def _qualifier(name: str | None, text: str) -> str:
    if name is None:
        found = _bare(text)
        if found is None:
            near = _nearest(text)
            hint = f"did you mean {near}:…? " if near else ""
            raise UsageError(
                f"{text!r} has no qualifier.", hint=f"{hint}write channel:{_quote(text)} or error:{_quote(text)}"
            )
        return found
    known = _ALSO.get(name.lower(), name.lower())
    if known not in QUALIFIERS:
        near = _nearest(name)
        meant = f"Did you mean {near}:? " if near else ""
        raise UsageError(f"There is no qualifier {name}:.", hint=f"{meant}{_HINT}")
    return known


def _bare(text: str) -> str | None:
    if re.fullmatch(r"[0-9]{1,19}", text):
        return "id"
    return "corr" if _UUID.fullmatch(text) else None


def _nearest(name: str) -> str | None:
    near = get_close_matches(name.lower(), [*QUALIFIERS, *_ALSO], 1)
    return _ALSO.get(near[0], near[0]) if near else None


def _read(name: str, text: str) -> Any:
    if not text.strip():
        raise UsageError(f"{name}: has no value.", hint=f"{name}: asks for messages {QUALIFIERS[name]}")
    return _READERS.get(name, str)(text)


def _statuses(text: str) -> tuple[str, ...]:
    found = []
    for word in (word.strip().lower() for word in text.split(",")):
        meant = {"dead": "failed", "waiting": "pending", "in_flight": "processing", "done": "completed"}.get(word, word)
        if meant not in STATUSES:
            near = get_close_matches(word, STATUSES, 1)
            hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(STATUSES)}"
            raise UsageError(f"{word!r} is not a status.", hint=hint)
        found.append(meant)
    return tuple(dict.fromkeys(found))


def _id(text: str) -> int:
    number = int(text) if re.fullmatch(r"[0-9]{1,19}", text.strip()) else -1
    if not 0 <= number < 2**63:
        raise UsageError(f"{text!r} is not an id.", hint="ids are whole numbers, such as id:42")
    return number


def _ids(text: str) -> tuple[int, ...]:
    found = tuple(dict.fromkeys(_id(word) for word in text.split(",")))
    if len(found) > _MOST_IDS:
        raise UsageError(f"{len(found)} ids are too many.", hint=f"ask for at most {_MOST_IDS} at once")
    return found


def _uuid(text: str) -> UUID:
    if not _UUID.fullmatch(text.strip()):
        hint = "write 32 hexadecimal digits, such as corr:6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11"
        raise UsageError(f"{text!r} is not a correlation id.", hint=hint)
    return UUID(text.strip())


def _time(text: str) -> datetime | timedelta:
    # A duration alone lies in the past: no message was sent in the future.
    ago = duration(text)
    if ago is not None and not text.strip().isdigit():
        try:
            return timedelta(seconds=-ago)
        except OverflowError:
            raise UsageError(f"{text!r} is not a valid time.", hint="write since:2h or since:2026-01-31") from None
    try:
        return when(text)
    except UsageError as error:
        raise UsageError(error.message, hint="write since:2h, since:2026-01-31 or since:2026-01-31T12:00") from None


_READERS: dict[str, Callable[[str], Any]] = {
    "status": _statuses,
    "id": _ids,
    "before": _id,
    "corr": _uuid,
    "since": _time,
    "until": _time,
}


def _moment(time: datetime | timedelta | None, now: datetime) -> datetime | None:
    try:
        return now + time if isinstance(time, timedelta) else time
    except OverflowError:
        raise UsageError("That time lies outside the years 1 to 9999.", hint="choose a nearer one") from None


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, timedelta):
        seconds = -value.total_seconds()
        return f"-{seconds:.6g}s" if seconds > 0 else f"+{-seconds:.6g}s"
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _quote(text: str) -> str:
    if text and not re.search(r"""[\s"\\]""", text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
