"""What all manifests of a lake together say, and the same as a checkpoint, so that not all need to be read. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from menzil.spark.lake.cover import Part
from menzil.spark.lake.manifest import File, Manifest, Slice, Step, check_format
from menzil.spark.lake.promote import Promoted
from menzil.spark.lake.schema import EVENTS, FORMAT, MESSAGES, TABLES


@dataclass
class Table:
    """Messages, or the event log: its files, what was exported, and the columns that files have."""

    files: dict[str, File] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    schemas: list[dict[str, str]] = field(default_factory=list)

    def of_month(self, month: str | None) -> list[File]:
        """The files of a month, or all."""
        return [file for file in self.files.values() if month in (None, file.month)]

    def slices_of(self, month: str) -> list[Slice]:
        """What was exported of a month, in order."""
        return [each for each in self.slices if each.month == month]

    def parts(self, month: str) -> list[Part]:
        """The same, as parts."""
        return [part for each in self.slices_of(month) for part in each.parts]


@dataclass
class State:
    """A lake."""

    number: int = 0
    tables: dict[str, Table] = field(default_factory=lambda: {name: Table() for name in TABLES})
    replaced: dict[str, tuple[str, float]] = field(default_factory=dict)  # since when, and how many seconds they stay
    steps: set[Step] = field(default_factory=set)
    promoted: dict[str, Promoted] = field(default_factory=dict)
    source: str | None = None  # of the last export

    @property
    def messages(self) -> Table:
        """The messages."""
        return self.tables[MESSAGES]

    @property
    def events(self) -> Table:
        """The event log."""
        return self.tables[EVENTS]

    @classmethod
    def of(cls, manifests: Iterable[tuple[int, Manifest]]) -> State:
        """Take them in order."""
        state = cls()
        for number, manifest in manifests:
            state.take(number, manifest)
        return state

    def take(self, number: int, manifest: Manifest) -> None:
        """One more."""
        table = self.tables[manifest.table]
        self.number = number
        self.source = manifest.source or self.source
        self.steps.add(manifest.step)
        self.promoted.update({each.key: each for each in manifest.promoted})
        if manifest.columns not in table.schemas:
            table.schemas.append(manifest.columns)
        for path in manifest.replaces:
            table.files.pop(path, None)
            self.replaced[path] = (manifest.at, manifest.keep_seconds)
        table.files.update({file.path: file for file in manifest.files})
        if manifest.slice is not None:
            table.slices.append(manifest.slice)

    def fits(self, manifest: Manifest) -> bool:
        """Whether nobody came first: none of its rows was exported yet, and what it replaces is still there."""
        table = self.tables[manifest.table]
        if manifest.slice is not None:
            known = table.parts(manifest.slice.month)
            if any(part.meets(other) for part in manifest.slice.parts for other in known):
                return False
        return all(path in table.files for path in manifest.replaces)

    def encode(self) -> bytes:
        """As a checkpoint."""
        tables = {
            name: {
                "files": [file.as_json() for file in table.files.values()],
                "slices": [each.as_json() for each in table.slices],
                "schemas": table.schemas,
            }
            for name, table in self.tables.items()
        }
        document = {
            "format": FORMAT,
            "number": self.number,
            "tables": tables,
            "replaced": self.replaced,
            "steps": sorted(self.steps, key=str),
            "promoted": [vars(each) for each in self.promoted.values()],
            "source": self.source,
        }
        return json.dumps(document, ensure_ascii=False).encode()

    @classmethod
    def decode(cls, text: bytes) -> State:
        """The same back."""
        given: dict[str, Any] = json.loads(text)
        check_format(given)
        state = cls(given["number"])
        for name, table in given["tables"].items():
            files = [File.from_json(file) for file in table["files"]]
            slices = [Slice.from_json(each) for each in table["slices"]]
            state.tables[name] = Table({file.path: file for file in files}, slices, table["schemas"])
        state.replaced = {path: (at, keep) for path, (at, keep) in given["replaced"].items()}
        state.steps = {(kind, run, month) for kind, run, month in given["steps"]}
        state.source = given.get("source")
        state.promoted = {each.key: each for each in (Promoted(**one) for one in given["promoted"])}
        return state
