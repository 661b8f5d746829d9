"""Manifests: each says what one step added and what it replaced. A lake is what they say, taken in order. No I/O."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from menzil.spark.lake.cover import Part
from menzil.spark.lake.errors import LakeError
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.promote import Promoted
from menzil.spark.lake.schema import EVENTS, FORMAT, MESSAGES, TABLES

Step = tuple[str, str, str | None]


@dataclass(frozen=True)
class File:
    """A Parquet file: where it lies, how large it is, and what is in it. The event log has no endpoints."""

    path: str
    month: str
    endpoint: str | None
    size: int
    fingerprint: Fingerprint

    def as_json(self) -> dict[str, Any]:
        """For a manifest."""
        return {**vars(self), "fingerprint": self.fingerprint.as_json()}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> File:
        """From a manifest."""
        known = {name: given[name] for name in ("path", "month", "endpoint", "size")}
        return cls(**known, fingerprint=Fingerprint.from_json(given["fingerprint"]))


@dataclass(frozen=True)
class Slice:
    """The rows that one run exported of a month of messages, or of the event log."""

    run: str
    month: str
    parts: tuple[Part, ...]
    fingerprint: Fingerprint

    def as_json(self) -> dict[str, Any]:
        """For a manifest."""
        parts = [part.as_json() for part in self.parts]
        return {**vars(self), "parts": parts, "fingerprint": self.fingerprint.as_json()}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Slice:
        """From a manifest."""
        parts = tuple(Part.from_json(part) for part in given["parts"])
        return cls(given["run"], given["month"], parts, Fingerprint.from_json(given["fingerprint"]))


@dataclass(frozen=True)
class Manifest:
    """One step: a month of an export, the event log of one, a compaction of a month, or the end of a run."""

    kind: str  # export, compact or run
    run: str
    month: str | None
    at: str
    files: tuple[File, ...] = ()
    replaces: tuple[str, ...] = ()
    slice: Slice | None = None
    columns: dict[str, str] = field(default_factory=lambda: dict(TABLES[MESSAGES]))
    table: str = MESSAGES
    promoted: tuple[Promoted, ...] = ()
    keep_seconds: float = 0.0  # how long replaced files stay for readers that began before
    source: str | None = None  # the server, the database and the timeline that were exported

    @property
    def step(self) -> Step:
        """Done once, whoever tries how often."""
        return (self.kind, self.run, EVENTS if self.table == EVENTS and self.kind == "export" else self.month)

    def encode(self) -> bytes:
        """The text of the file."""
        document = {
            "format": FORMAT,
            **vars(self),
            "files": [file.as_json() for file in self.files],
            "slice": None if self.slice is None else self.slice.as_json(),
            "promoted": [vars(each) for each in self.promoted],
        }
        return json.dumps(document, indent=1, ensure_ascii=False).encode()

    @classmethod
    def decode(cls, text: bytes) -> Manifest:
        """Read it; one of a later format is refused rather than half understood."""
        given = json.loads(text)
        check_format(given)
        return cls(
            given["kind"], given["run"], given["month"], given["at"],
            tuple(File.from_json(file) for file in given["files"]), tuple(given["replaces"]),
            None if given["slice"] is None else Slice.from_json(given["slice"]), given["columns"], given["table"],
            tuple(Promoted(**each) for each in given["promoted"]), given["keep_seconds"],
            given.get("source"),
        )  # fmt: skip


def check_format(given: dict[str, Any]) -> None:
    """Refuse what a later version wrote."""
    if given["format"] > FORMAT:
        raise LakeError(f"This lake has format {given['format']}, this menzil reads {FORMAT}.", hint="upgrade menzil")
