"""Numbers that people type. Python also reads nan and inf, which are in every range and in none."""

from __future__ import annotations

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it, or say what is wrong."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number that can be counted to.", param, ctx)
        return number


#: Messages per second. At a slower rate a single message takes more than ten years, which SQL refuses. At one much
#: slower the length of time is infinite, and no sentence about it could be written.
RATE = Finite(min=1e-9, max=1_000_000)
