"""A page is made of parts. Each asks on its own, and one that is cut leaves a sentence in its place."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psycopg

from menzil.console.access import Payloads
from menzil.console.database import LOCK, PAGE, TOO_LATE, Database
from menzil.model.errors import MenzilError, UnknownNameError
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
        """A number of the query; what is not one, or is out of range, is the default."""
        given = self.text(name)
        number = int(given) if given.lstrip("-").isdecimal() and len(given) < 20 else default
        return number if least <= number <= most else default


Part = Callable[[Look], Any]

LOGGER = logging.getLogger("menzil.console")


class NotThereError(UnknownNameError):
    """What the page is about does not exist."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a part is not there."""

    sentence: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a part found, when, and how long it took in milliseconds."""

    value: Any
    at: datetime
    ms: float
    trouble: Trouble | None = None
    missing: bool = False


def ask(database: Database, part: Part, look: Callable[[Run], Look], deadline: float) -> Answer:
    """Ask for one part; whatever happens is an answer."""
    began = time.monotonic()
    trouble, missing, value = None, False, None
    try:
        value = database.read(lambda run: part(look(run)), deadline)
    except NotThereError as error:
        trouble, missing = Trouble(error.message, error.hint), True
    except (MenzilError, psycopg.Error) as error:
        trouble = explain(error)
    except Exception:  # a bug of one part must not cost the others
        LOGGER.exception("a part of a page failed")
        trouble = Trouble("This part of the page failed.", "The log of the console has the details.")
    return Answer(value, datetime.now(UTC), (time.monotonic() - began) * 1000, trouble, missing)


def late() -> Answer:
    """The answer of a part that was still under way when the page had to go out."""
    return Answer(None, datetime.now(UTC), PAGE * 1000, Trouble(TOO_LATE, "It is asked for again in a moment."))


def explain(error: MenzilError | psycopg.Error) -> Trouble:
    """One sentence for the place of a part."""
    if isinstance(error, MenzilError):
        return Trouble(error.message, error.hint)
    match error:
        case psycopg.errors.LockNotAvailable():
            sentence = f"A table is locked: this part waited {LOCK * 1000:.0f} ms and gave up."
            return Trouble(sentence, "The lock ends with the transaction that holds it; the page asks again.")
        case psycopg.errors.QueryCanceled():
            return Trouble("This part took too long and was stopped.", "It is asked for again in a moment.")
        case psycopg.errors.SerializationFailure() | psycopg.errors.DeadlockDetected():
            return Trouble("Another transaction changed the same rows at this moment.", "Try again in a moment.")
    said = error.diag.message_primary or str(error).strip().split("\n")[0] or type(error).__name__
    return Trouble(f"The database could not: {said}", error.diag.message_hint)
