"""The size of a chart: one for wide windows and one for phones, and the scale that one spike does not flatten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """Where the drawing is, in units of the picture; `marks` is how many times fit below it."""

    width: float
    height: float
    left: float
    right: float
    marks: int
    top: float = 16.0
    bottom: float = 26.0

    @property
    def low(self) -> float:
        """The base line."""
        return self.height - self.bottom

    @property
    def inner(self) -> float:
        """The width between the margins."""
        return self.width - self.left - self.right

    @property
    def end(self) -> float:
        """The right edge."""
        return self.width - self.right

    def up(self, share: float) -> float:
        """The height of a share of the whole scale."""
        return self.low - (self.low - self.top) * share


WIDE = Frame(1080, 240, 52, 12, 9)
NARROW = Frame(400, 220, 46, 6, 4)

#: A value this many times the others is a spike. Fewer values have no "others".
SPIKE, FEW = 5, 8


def both(draw: Callable[[Frame], str], wide: Frame = WIDE) -> str:
    """The chart in both sizes; the sheet shows one of them."""
    return f'<div class="on-wide">{draw(wide)}</div><div class="on-narrow">{draw(NARROW)}</div>'


def ceiling(values: Sequence[float]) -> float:
    """The top of a scale: the largest value, unless it is a spike beside which all others would lie flat."""
    there = sorted(value for value in values if value > 0)
    if not there:
        return 0.0
    usual = there[int(0.95 * (len(there) - 1))]
    return usual * 1.5 if len(there) >= FEW and there[-1] > SPIKE * usual else there[-1]
