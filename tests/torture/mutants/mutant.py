"""A queue with a bug in it, to see whether a torture run would notice."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

import menzil
from tests.torture.plan import Plan

FUNCTIONS = Path(menzil.__file__).parent / "sql" / "functions"
_DROP = re.compile(r"^drop function if exists .*;$", re.MULTILINE)


class Edit(NamedTuple):
    """A passage of an SQL function and what stands there instead; it must occur just so often."""

    file: str
    old: str
    new: str
    times: int = 1

    def of(self, text: str) -> str:
        """The text of the file, edited. A passage that has changed would leave the queue without a bug."""
        found = text.count(self.old)
        assert found == self.times, f"{self.file} has {found} times what was expected {self.times} times: {self.old}"
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Mutant:
    """A bug: what it is, where it is put in, the run that provokes it, and who should notice."""

    sentence: str
    expected: tuple[str, ...]
    edits: tuple[Edit, ...] = ()
    worker: Callable[[], None] | None = None  # patches the worker, in its own process, before it starts
    elsewhere: bool = False  # a process of the lab does it: it knows the mutant's name
    plan: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> list[str]:
        """The files that are edited."""
        return list(dict.fromkeys(edit.file for edit in self.edits))

    def apply(self, dsn: str) -> None:
        """Put it into an installed schema."""
        with psycopg.connect(dsn, autocommit=True) as conn:
            for file in self.files:
                # A function that is dropped first would have another owner afterwards.
                text = _DROP.sub("", (FUNCTIONS / file).read_text())
                for edit in self.edits:
                    text = edit.of(text) if edit.file == file else text
                conn.execute(text.encode())

    def planned(self, name: str, seed: int) -> Plan:
        """The run that is to notice it."""
        return replace(Plan(seed=seed, mutant=name), **self.plan)
