"""What an Op is: a statement, its parameters, and how to read the answer. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, LiteralString, TypeVar

from menzil.model.wire import read_time

T = TypeVar("T")
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Op(Generic[T]):
    """A call of one SQL function, ready to run.

    `read` gets the rows with jsonb, uuid and timestamptz still undecoded (menzil.model.wire reads them).
    """

    text: LiteralString
    params: tuple[str | bytes | None, ...]
    read: Callable[[Rows], T]


def nothing(rows: Rows) -> None:
    """Read the answer of a void function."""


def integer(rows: Rows) -> int:
    """Read one number."""
    return rows[0][0]  # type: ignore[no-any-return]


def integers(rows: Rows) -> list[int]:
    """Read one array of numbers."""
    return rows[0][0]  # type: ignore[no-any-return]


def boolean(rows: Rows) -> bool:
    """Read one yes or no."""
    return rows[0][0]  # type: ignore[no-any-return]


def text(rows: Rows) -> str:
    """Read one text."""
    return rows[0][0]  # type: ignore[no-any-return]


def time(rows: Rows) -> datetime:
    """Read one timestamptz."""
    return read_time(rows[0][0])
