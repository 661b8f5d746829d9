"""A figure: what was measured in each repeat, what it must reach, and what was measured beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True)
class Target:
    """A bound that a figure has to keep."""

    limit: float
    at_least: bool = True

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {number(self.limit)}"


@dataclass
class Figure:
    """One line of the table. Its value is the median of its repeats."""

    section: str
    name: str
    values: list[float]
    target: Target | None = None
    beside: dict[str, float] = field(default_factory=dict)  # the plain measurements the ratio was made of
    unit: str = "×"

    @property
    def value(self) -> float:
        return median(self.values)

    @property
    def reached(self) -> bool | None:
        return None if self.target is None else self.target.holds(self.value)

    @property
    def verdict(self) -> str:
        return {None: "", True: "reached", False: "**not reached**"}[self.reached]

    @property
    def spread(self) -> str:
        if len(self.values) < 2:
            return ""
        return f"{number(min(self.values))}–{number(max(self.values))}"

    @property
    def company(self) -> str:
        return ", ".join(f"{name} {number(value)}" for name, value in self.beside.items())


def number(value: float) -> str:
    """Three digits that matter."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
