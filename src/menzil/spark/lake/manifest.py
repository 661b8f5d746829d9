"""Manifests: each says what one step added and what it replaced. A lake is what they say, taken in order. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from menzil.spark.lake.errors import LakeError
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.schema import COLUMNS, FORMAT


@dataclass(frozen=True)
class File:
    """A Parquet file: where it lies, how large it is, and what is in it."""

    path: str
    month: str
    endpoint: str
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
    """The ends that one run exported of a month: those with transaction ids from `start` to before `until`."""

    run: str
    month: str
    start: int
    until: int
    fingerprint: Fingerprint

    def as_json(self) -> dict[str, Any]:
        """For a manifest. Transaction ids are texts: they have 64 bits."""
        bounds = {"start": str(self.start), "until": str(self.until)}
        return {**vars(self), **bounds, "fingerprint": self.fingerprint.as_json()}

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Slice:
        """From a manifest."""
        fingerprint = Fingerprint.from_json(given["fingerprint"])
        return cls(given["run"], given["month"], int(given["start"]), int(given["until"]), fingerprint)


@dataclass(frozen=True)
class Manifest:
    """One step: a month of an export, a compaction of a month, or the end of a run."""

    kind: str  # export, compact or run
    run: str
    month: str | None
    at: str
    files: tuple[File, ...] = ()
    replaces: tuple[str, ...] = ()
    slice: Slice | None = None
    columns: dict[str, str] = field(default_factory=lambda: dict(COLUMNS))

    @property
    def step(self) -> tuple[str, str, str | None]:
        """Done once, whoever tries how often."""
        return (self.kind, self.run, self.month)

    def encode(self) -> bytes:
        """The text of the file."""
        document = {
            "format": FORMAT,
            **vars(self),
            "files": [file.as_json() for file in self.files],
            "slice": None if self.slice is None else self.slice.as_json(),
        }
        return json.dumps(document, indent=1, ensure_ascii=False).encode()

    @classmethod
    def decode(cls, text: bytes) -> Manifest:
        """Read it; one of a later format is refused rather than half understood."""
        given = json.loads(text)
        if given["format"] > FORMAT:
            raise LakeError(
                f"This lake has format {given['format']}, this menzil reads {FORMAT}.", hint="upgrade menzil"
            )
        return cls(
            given["kind"], given["run"], given["month"], given["at"],
            tuple(File.from_json(file) for file in given["files"]), tuple(given["replaces"]),
            None if given["slice"] is None else Slice.from_json(given["slice"]), given["columns"],
        )  # fmt: skip


@dataclass
class State:
    """What all manifests together say."""

    number: int = 0
    files: dict[str, File] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)  # and since when
    slices: list[Slice] = field(default_factory=list)
    steps: set[tuple[str, str, str | None]] = field(default_factory=set)
    schemas: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, manifests: Iterable[tuple[int, Manifest]]) -> State:
        """Take them in order."""
        state = cls()
        for number, manifest in manifests:
            state.take(number, manifest)
        return state

    def take(self, number: int, manifest: Manifest) -> None:
        """One more."""
        self.number = number
        self.steps.add(manifest.step)
        if manifest.columns not in self.schemas:
            self.schemas.append(manifest.columns)
        for path in manifest.replaces:
            self.files.pop(path, None)
            self.replaced[path] = manifest.at
        self.files.update({file.path: file for file in manifest.files})
        if manifest.slice is not None:
            self.slices.append(manifest.slice)

    def fits(self, manifest: Manifest) -> bool:
        """Whether nobody came first: its slice begins where the last one ended, and what it replaces is still there."""
        if manifest.slice is not None and manifest.slice.start != self.watermark(manifest.slice.month):
            return False
        return all(path in self.files for path in manifest.replaces)

    def watermark(self, month: str) -> int:
        """The transaction id from which ends of this month are new."""
        return max((each.until for each in self.slices if each.month == month), default=0)

    def of_month(self, month: str | None) -> list[File]:
        """The files of a month, or all."""
        return [file for file in self.files.values() if month in (None, file.month)]
