"""What an act is: fields, a plan that says what would happen, and the Ops that do it. One class per act in acts/.

The steps are the same for all of them (acting.py): form, plan, confirm, one transaction, result. An act writes no
SQL: the plan shows the text of the very Ops that are run.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from menzil.console.access import Role
from menzil.model.errors import InvalidValueError, MissingValueError
from menzil.ops.op import Op
from menzil.watch.finding import Run

Given = Mapping[str, str]

#: Above so many, the person types the number.
TYPED_ABOVE = 1_000


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form. A `hidden` one comes from the page that led here and is shown as a text."""

    name: str
    label: str
    kind: Literal["text", "number", "choice", "area", "check", "hidden"] = "text"
    required: bool = True
    default: str = ""
    help: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    longest: int = 1_000


@dataclass(frozen=True, slots=True)
class Change:
    """A value that would change."""

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What would happen. `count` is what a second look compares; the person types it where it is above 1,000."""

    what: str
    command: str
    count: int | None = None
    counted_exactly: bool = True
    #: Whether counting stopped, so that there may be more.
    at_least: bool = False
    to: Sequence[str] = ()
    more: Sequence[str] = ()
    leaves: Sequence[str] = ()
    changes: Sequence[Change] = ()
    #: Reasons not to do it that do not forbid it.
    warnings: Sequence[str] = ()
    #: The same in other languages: (which, text).
    also: Sequence[tuple[str, str]] = ()

    @property
    def must_type(self) -> bool:
        """Whether the person confirms by typing the number."""
        return self.count is not None and self.count > TYPED_ABOVE

    def moved(self, before: int | None) -> bool:
        """Whether the count moved by more than a tenth since it was shown."""
        if self.count is None or before is None:
            return self.count is not before
        return abs(self.count - before) > before / 10

    @property
    def mark(self) -> str:
        """A mark of the values that would change, old and new."""
        return hashlib.sha256(repr(list(self.changes)).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Undo:
    """An act that takes another back or follows it, with its fields."""

    act: str
    given: Given
    label: str = "Undo"


@dataclass(frozen=True, slots=True)
class Done:
    """What happened: a sentence, the way back, the next step, where to look, and texts that are shown this once."""

    sentence: str
    #: Brings the state back that was there before. A test compares the rows.
    undo: Undo | None = None
    see: Sequence[tuple[str, str]] = ()
    #: An act that usually follows, and takes nothing back.
    next: Undo | None = None
    once: Mapping[str, str] | None = None
    #: Kind and id of what was acted on, where the function itself leaves no line in the event log.
    noted: tuple[str, str] | None = None
    #: What a program is answered: the keys of the command line's --json.
    answer: Mapping[str, Any] = field(default_factory=dict)


class Act(ABC):
    """An act. `name` is its place below /acts/; `back` is the path of the page it belongs to."""

    name: ClassVar[str]
    title: ClassVar[str]
    verb: ClassVar[str]
    role: ClassVar[Role] = "operator"
    danger: ClassVar[bool] = False
    fields: ClassVar[tuple[Field, ...]] = ()
    #: Whether a program with a token may do it in one request: /acts/NAME.json.
    by_program: ClassVar[bool] = False
    #: Whether its plan lists old and new values: then it is made again when these are others at the confirmation.
    lists_changes: ClassVar[bool] = False
    nav: ClassVar[str] = ""

    @abstractmethod
    def plan(self, run: Run, given: Given) -> Plan:
        """Say what would happen; refuse what cannot."""

    @abstractmethod
    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        """The Ops that do it, in order. `run` only reads; it is the one of the plan or of the transaction."""

    def shown(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        """The Ops whose SQL the plan shows."""
        return self.ops(run, given)

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        """Say what happened, from what the Ops answered. An act that needs to know more overrides execute."""
        del answers, given
        return Done(f"{self.title}: done.")

    def execute(self, run: Run, given: Given) -> Done:
        """Do it, in the transaction of `run`."""
        was_so = self.is_so(run, given)
        done = self.done([run(op) for op in self.ops(run, given)], given)
        return replace(done, undo=None) if was_so else done

    def back(self, given: Given) -> str:
        """Where the person came from."""
        del given
        return self.nav or "/"

    def prefill(self, run: Run, given: Given) -> Given:
        """What the fields hold before the person writes into them, such as the limits of a channel."""
        del run, given
        return {}

    def read(self, form: Given) -> dict[str, str]:
        """Take the fields out of a form or a query, and refuse what is missing or too long."""
        found = {}
        for one in self.fields:
            value = form.get(one.name, "" if one.kind == "check" else one.default)
            if one.kind != "area":
                value = value.strip()
            if one.required and not value:
                raise MissingValueError(f"{one.label} is missing.")
            if len(value) > one.longest:
                raise InvalidValueError(f"{one.label} is longer than {one.longest:,} characters.")
            if one.kind == "choice" and value and value not in [word for word, _ in one.choices]:
                raise InvalidValueError(f"{one.label} has no choice {value!r}.")
            if one.kind == "number" and value and not value.lstrip("-").replace(".", "", 1).isdecimal():
                raise InvalidValueError(f"{one.label} is not a number.")
            found[one.name] = value
        return found

    def is_so(self, run: Run, given: Given) -> bool:
        """Whether it is so already: then the act changes nothing, and to undo it would."""
        del run, given
        return False

    def complete(self, query: Given) -> bool:
        """Whether a link named every field that is needed, so that the plan can be shown at once."""
        return all(query.get(one.name) for one in self.fields if one.required) and "edit" not in query
