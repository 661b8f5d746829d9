"""What a janitor is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from menzil.ops.op import Op


@dataclass(frozen=True, slots=True)
class Janitor:
    """One duty: a sweep of at most `limit` rows, every `interval` seconds, by whichever worker comes first.

    A sweep that found as much as it was allowed is followed by another, up to `rounds` of them.
    """

    name: str
    interval: float
    sweep: Callable[[int], Op[int]]
    limit: int = 1000
    rounds: int = 20
