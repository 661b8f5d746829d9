"""Conditions on a table of the lake, in Iceberg's words: which files may have such rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pyiceberg import expressions
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Or

from menzil.spark.lake import layout

# Their constructors take a name and a value, which mypy does not see.
_of: Any = expressions


def created(first: datetime | None, after: datetime | None) -> BooleanExpression:
    """Created from one time to before another."""
    found: BooleanExpression = AlwaysTrue()
    if first is not None:
        found = And(found, _of.GreaterThanOrEqual("created_at", first.astimezone(UTC).isoformat()))
    return found if after is None else And(found, _of.LessThan("created_at", after.astimezone(UTC).isoformat()))


def in_months(months: Sequence[str]) -> BooleanExpression:
    """Created in one of these months."""
    found: BooleanExpression = AlwaysFalse()
    for month in months:
        found = Or(found, created(layout.month_start(month), layout.month_end(month)))
    return found


def one_of(column: str, values: Sequence[Any]) -> BooleanExpression:
    """A column has one of these values."""
    found: BooleanExpression = _of.In(column, list(values))
    return found
