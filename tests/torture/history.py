"""What everybody who takes part in a torture run writes down, and how.

One file for each process, one JSON object on each line, each written by a single write() to a file opened for
appending: whatever kills the process, the lines before are whole. Times are CLOCK_MONOTONIC in nanoseconds, which all
processes of one machine share and no wall clock can shift.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: who, when, what, and its particulars."""

    who: str
    at: int
    kind: str
    facts: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.facts[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.facts.get(name, default)


class Diary:
    """The file of one process."""

    def __init__(self, place: Path, who: str) -> None:
        self.who = who
        self._fd = os.open(place / f"{who}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def note(self, kind: str, **facts: Any) -> None:
        line = json.dumps({"who": self.who, "at": time.monotonic_ns(), "kind": kind, **facts}, separators=(",", ":"))
        os.write(self._fd, line.encode() + b"\n")


def read(place: Path, names: str = "*") -> list[Entry]:
    """All files of a run, or those of these processes, in the order of time."""
    return sorted(_lines(place, names), key=lambda entry: entry.at)


def _lines(place: Path, names: str) -> Iterator[Entry]:
    for path in sorted(place.glob(f"{names}.jsonl")):
        for line in path.read_text().splitlines():
            facts = json.loads(line)
            yield Entry(facts.pop("who"), facts.pop("at"), facts.pop("kind"), facts)
