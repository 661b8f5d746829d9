"""What a page is: a path, its parts, a template, and a twin in JSON. One file in pages/ per page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from menzil.console.access import Access, Role
from menzil.console.parts import Answer, Look, Part, Trouble


@dataclass(frozen=True)
class Shown:
    """What the parts of a page found, for its template and its twin."""

    answers: Mapping[str, Answer]
    path: Mapping[str, str]
    query: Mapping[str, str]
    access: Access

    def __getitem__(self, part: str) -> Any:
        """What a part found; None where there is trouble."""
        return self.answers[part].value

    @property
    def troubles(self) -> dict[str, Trouble]:
        """The parts that are not there, and why."""
        return {name: one.trouble for name, one in self.answers.items() if one.trouble is not None}

    @property
    def at(self) -> datetime:
        """As of when the page is: its oldest part. What stays as it is for a while is of now for that long."""
        now = datetime.now(UTC)
        return min(max(one.at, min(one.at + timedelta(seconds=one.holds), now)) for one in self.answers.values())

    @property
    def age(self) -> float:
        """How many seconds old the page is."""
        return (datetime.now(UTC) - self.at).total_seconds()

    @property
    def ms(self) -> float:
        """How long the database was asked, all parts together."""
        return sum(one.ms for one in self.answers.values())


def all_parts(shown: Shown) -> Any:
    """The twin of a page of several parts: one key for each."""
    return {name: answer.value for name, answer in shown.answers.items()}


def only(part: str) -> Callable[[Shown], Any]:
    """The twin of a page that is one list."""
    return lambda shown: shown[part]


@dataclass(frozen=True)
class Page:
    """`prepare` returns what the template needs besides the parts: at least `title` and `heading`."""

    path: str
    template: str
    parts: Mapping[str, Part]
    prepare: Callable[[Shown], dict[str, Any]]
    twin: Callable[[Shown], Any] = all_parts
    twin_path: str = ""
    role: Role = "viewer"
    #: The place in the navigation that this page belongs to.
    nav: str = ""
    #: Seconds between two looks of a page that is open; 0 for a page that stays as it is.
    live: int = 5
    #: Words of the query that the page reads. Its JSON refuses others: a program has misspelled a filter.
    asks: tuple[str, ...] = ()
    #: What some of them may be. A page for people shows its first choice in the place of another text.
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def json_path(self) -> str:
        """Where the twin is."""
        return self.twin_path or f"{self.path}.json"


__all__ = ["Answer", "Look", "Page", "Shown", "Trouble", "all_parts", "only"]
