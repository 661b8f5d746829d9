"""What the doctor says: one sentence for each thing looked at, and what repairs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

from menzil.ops.op import Op

T = TypeVar("T")
Level = Literal["ok", "warning", "critical", "unknown"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`repair` is a statement or a command, and None only where nothing is wrong."""

    check: str
    level: Level
    sentence: str
    repair: str | None = None

    @property
    def needs_fixing(self) -> bool:
        return self.level in ("warning", "critical")


class Run(Protocol):
    """Runs an Op on the database that is looked at."""

    def __call__(self, op: Op[T]) -> T: ...


#: A look at one thing: what is wrong with it, or nothing.
Look: TypeAlias = Callable[[Run], list[Finding]]
