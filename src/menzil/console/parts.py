"""A page is made of parts. Each asks on its own, and one that is cut leaves a sentence in its place."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import psycopg

from menzil.console.access import Payloads
from menzil.console.database import LOCK, PAGE, TOO_LATE, Database, Seen, TooLateError
from menzil.model.errors import (
    ConnectionFailedError,
    InvalidValueError,
    MenzilError,
    PermissionDeniedError,
    SchemaError,
    UnknownNameError,
    UsageError,
)
from menzil.model.redact import Redactor
from menzil.watch.finding import Run


@dataclass(frozen=True)
class Look:
    """What a part may know: how to ask, the names in the path, the query of the URL, and what the viewer may see.

    It does not say who looks: the answer is shared by all who may see the same.
    """

    run: Run
    path: Mapping[str, str]
    query: Mapping[str, str]
    sees: Payloads
    redact: Callable[[], Redactor] = field(repr=False)
    lake: str | None = None

    def text(self, name: str, default: str = "") -> str:
        """A word of the query."""
        return self.query.get(name, default).strip()

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A number of the query; another text is refused, or a page of another size would look complete."""
        given = self.text(name)
        if not given:
            return default
        number = int(given) if re.fullmatch("-?[0-9]{1,19}", given) else least - 1
        if not least <= number <= most:
            raise UsageError(f"{name} must be a whole number from {least:,} to {most:,}, not {given[:40]!r}.")
        return number

    def place(self, name: str = "before") -> int | None:
        """Where a page goes on; None for the first one."""
        return self.number(name, 0, 0, 2**63 - 1) if self.text(name) else None

    def line(self, name: str, most: int) -> str:
        """A text of the query; one that is too long is refused: what is cut off would be another question."""
        given = self.text(name)
        if len(given) > most:
            raise UsageError(f"{name} has {len(given):,} characters, and at most {most:,} are read.")
        return given


Part = Callable[[Look], Any]
T = TypeVar("T", bound=Part)


def reading(*words: str, soon: bool = False, holds: Callable[[Any], float] | None = None) -> Callable[[T], T]:
    """Say which words of the query a part reads: it gets no others, and pages that differ in others share its answer.

    A part without this reads all of them. `soon`: an open page tells it within seconds, whatever other pages ask for.
    `holds`: for how many seconds what it found stays as it is; it is not asked for again before.
    """

    def mark(part: T) -> T:
        _READS[part] = frozenset(words)
        if soon:
            _SOON.add(part)
        if holds is not None:
            _HOLDS[part] = holds
        return part

    return mark


_READS: dict[Part, frozenset[str]] = {}
_SOON: set[Part] = set()
_HOLDS: dict[Part, Callable[[Any], float]] = {}


def reads(part: Part, word: str) -> bool:
    """Whether the part reads this word of the query."""
    return part not in _READS or word in _READS[part]


def is_soon(part: Part) -> bool:
    """Whether an open page tells this part within seconds."""
    return part in _SOON


LOGGER = logging.getLogger("menzil.console")

#: For a role that may not even look at the schema.
NO_RIGHTS = "Let an administrator run: grant menzil_monitor, menzil_pipeline to the role of the console."


class NotThereError(UnknownNameError):
    """What the page is about does not exist."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a part is not there."""

    sentence: str
    hint: str | None = None
    #: Whether the whole database is missing: then a page says so once and not in the place of every part.
    whole: bool = False
    #: Whether only time was missing: then an answer of a minute ago says more than this.
    slow: bool = False
    #: Whether the request asks for something that is not, such as a misspelled qualifier.
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What a part found, as of when, how long it took in milliseconds, and for how long the database worked.

    `saved`: for how long it would have worked more, had no other page asked the same.
    """

    value: Any
    at: datetime
    ms: float
    trouble: Trouble | None = None
    missing: bool = False
    spent: float = 0.0
    saved: float = 0.0
    #: Seconds for which what was found stays as it is.
    holds: float = 0.0
    #: A mark of what was found; times are exact here, so that only their distance from now does not change it.
    mark: str = ""


def ask(database: Database, part: Part, look: Callable[[Run], Look], deadline: float) -> Answer:
    """Ask for one part; an error becomes an answer, too."""
    began = time.monotonic()
    trouble, missing, value, seen = None, False, None, Seen()
    try:
        value = database.read(lambda run: part(look(run)), deadline, seen)
    except NotThereError as error:
        trouble, missing = Trouble(error.message, error.hint), True
    except (MenzilError, psycopg.Error) as error:
        trouble = explain(error)
    except Exception:  # a bug of one part must not cost the others
        LOGGER.exception("a part of a page failed")
        trouble = Trouble("This part of the page failed.", "The log of the console has the details.")
    at, ms = seen.oldest or datetime.now(UTC), (time.monotonic() - began) * 1000
    holds = _HOLDS[part](value) if part in _HOLDS and trouble is None else 0.0
    return Answer(value, at, ms, trouble, missing, seen.spent, seen.saved, holds, _mark(value, trouble))


def _mark(value: Any, trouble: Trouble | None) -> str:
    """Made once for all viewers. When the database was asked changes nothing of what is shown, and stands apart."""
    if isinstance(value, dict):
        value = {name: one for name, one in value.items() if name != "as_of"}
    # Not JSON, which takes ten times as long for a page of a hundred channels: nothing reads the text.
    text = repr((value, trouble and trouble.sentence))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def late(down: MenzilError | None = None) -> Answer:
    """The answer of a part that was still under way when the page had to go out, because of `down` if it is known."""
    trouble = explain(down) if down else Trouble(TOO_LATE, "It is asked for again in a moment.", slow=True)
    return Answer(None, datetime.now(UTC), PAGE * 1000, trouble, mark=_mark(None, trouble))


def explain(error: MenzilError | psycopg.Error) -> Trouble:
    """One sentence for the place of a part."""
    if isinstance(error, PermissionDeniedError) and "for schema menzil" in error.message:
        return Trouble(error.message, NO_RIGHTS)  # the hint of the client speaks of roles that send and work
    if isinstance(error, MenzilError):
        whole = isinstance(error, ConnectionFailedError | SchemaError)
        wrong = isinstance(error, UsageError | InvalidValueError | UnknownNameError)
        return Trouble(error.message, error.hint, whole, slow=isinstance(error, TooLateError), wrong=wrong)
    match error:
        case psycopg.errors.LockNotAvailable():
            sentence = f"A table is locked: this part waited {LOCK * 1000:.0f} ms and gave up."
            return Trouble(sentence, "The lock ends with the transaction that holds it; the page asks again.")
        case psycopg.errors.QueryCanceled():
            return Trouble("This part took too long and was stopped.", "It is asked for again in a moment.", slow=True)
        case psycopg.errors.SerializationFailure() | psycopg.errors.DeadlockDetected():
            return Trouble("Another transaction changed the same rows at this moment.", "Try again in a moment.")
    if "during recovery" in (error.diag.message_primary or ""):
        hint = "Start the console with --acts-dsn, which names the primary."
        return Trouble("This server is a standby, and nothing can be changed on it.", hint)
    said = error.diag.message_primary or str(error).strip().split("\n")[0] or type(error).__name__
    return Trouble(f"The database could not: {said}", error.diag.message_hint)
