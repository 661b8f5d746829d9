"""What a table remembers for menzil, in properties that are set in the commit they speak of. Pure.

| property | |
|---|---|
| menzil.cover.2026-03 | slices of a month, or of the event log (menzil.cover.events): which ends, their fingerprint |
| menzil.run.ID | a run that is done, and when |
| menzil.promoted | fields of payloads that have columns |
| menzil.source | the server, the database and the timeline of the last export |
| menzil.catalog | the catalog of .pyiceberg.yaml in which it was made; none is that of the queue's database |

Properties of snapshots would be gone when the snapshots expire.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from menzil.spark.lake.cover import Part, covered
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.promote import Promoted

_COVER, _RUN, _PROMOTED, _SOURCE = "menzil.cover.", "menzil.run.", "menzil.promoted", "menzil.source"
_CATALOG = "menzil.catalog"

#: Slices of a month that stay apart, and runs that are remembered.
SLICES, RUNS = 20, 1000


@dataclass(frozen=True)
class Slice:
    """The rows that one run, or some, exported of a month of messages, or of the event log.

    What is sealed was proved for a drop: the database may have dropped it, so what came later stays apart from it.
    What is lean was exported when the event log had no actor and no via.
    """

    run: str
    month: str
    parts: tuple[Part, ...]
    fingerprint: Fingerprint
    sealed: bool = False
    lean: bool = False

    def as_json(self) -> dict[str, Any]:
        """For a property."""
        marks = {name: True for name in ("sealed", "lean") if getattr(self, name)}
        parts = [part.as_json() for part in self.parts]
        return {"run": self.run, "parts": parts, "fingerprint": self.fingerprint.as_json(), **marks}

    @classmethod
    def from_json(cls, month: str, given: dict[str, Any]) -> Slice:
        """From a property."""
        parts = tuple(Part.from_json(part) for part in given["parts"])
        marks = {name: bool(given.get(name)) for name in ("sealed", "lean")}
        return cls(given["run"], month, parts, Fingerprint.from_json(given["fingerprint"]), **marks)

    def __add__(self, later: Slice) -> Slice:
        parts = tuple(covered([*self.parts, *later.parts]))
        return replace(later, parts=parts, fingerprint=self.fingerprint + later.fingerprint)


def total(slices: Iterable[Slice]) -> Fingerprint:
    """Of all of them."""
    return Fingerprint.total(each.fingerprint for each in slices)


def fewer(slices: list[Slice]) -> list[Slice]:
    """Slices as they are kept: the oldest are put together, but nothing with what was sealed before it."""
    found = list(slices)
    at = 0
    while len(found) > SLICES and at + 1 < len(found):
        one, two = found[at], found[at + 1]
        if one.sealed or one.lean != two.lean:
            at += 1
        else:
            found[at : at + 2] = [one + two]
    return found


class Memory:
    """What the properties of a table say."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    @property
    def labels(self) -> list[str]:
        """Months, or the event log, of which something was exported."""
        return sorted(name.removeprefix(_COVER) for name in self._properties if name.startswith(_COVER))

    def slices(self, label: str) -> list[Slice]:
        """What was exported of it, in order."""
        text = self._properties.get(f"{_COVER}{label}")
        return [] if text is None else [Slice.from_json(label, each) for each in json.loads(text)]

    def parts(self, label: str) -> list[Part]:
        """The same, as parts."""
        return [part for each in self.slices(label) for part in each.parts]

    def all_slices(self) -> list[Slice]:
        """Of all months."""
        return [each for label in self.labels for each in self.slices(label)]

    def done(self, run: str) -> bool:
        """Whether a run was finished."""
        return f"{_RUN}{run}" in self._properties

    @property
    def promoted(self) -> list[Promoted]:
        """Fields that have columns."""
        return [Promoted(**each) for each in json.loads(self._properties.get(_PROMOTED, "[]"))]

    @property
    def source(self) -> str | None:
        """Of the last export."""
        return self._properties.get(_SOURCE)

    @property
    def catalog(self) -> str | None:
        """Where it was made, if not in the queue's database."""
        return self._properties.get(_CATALOG)

    def old_runs(self) -> list[str]:
        """Properties of runs that one more pushes out."""
        runs = sorted((at, name) for name, at in self._properties.items() if name.startswith(_RUN))
        return [name for _, name in runs[: max(0, len(runs) - RUNS + 1)]]


def cover(slices: Iterable[Slice]) -> dict[str, str]:
    """The properties that say this, of slices of one month or of several."""
    by_month: dict[str, list[Slice]] = {}
    for each in slices:
        by_month.setdefault(each.month, []).append(each)
    return {
        f"{_COVER}{label}": json.dumps([each.as_json() for each in fewer(those)], separators=(",", ":"))
        for label, those in by_month.items()
    }


def run_property(run: str, at: str) -> dict[str, str]:
    """A run is done."""
    return {f"{_RUN}{run}": at}


def promoted_property(promotions: Iterable[Promoted]) -> dict[str, str]:
    """These fields have columns."""
    found = [vars(each) for each in promotions]
    return {_PROMOTED: json.dumps(found)} if found else {}


def source_property(source: str | None) -> dict[str, str]:
    """Where rows came from."""
    return {} if source is None else {_SOURCE: source}


def catalog_property(name: str | None) -> dict[str, str]:
    """In which catalog a table is made."""
    return {} if name is None else {_CATALOG: name}
