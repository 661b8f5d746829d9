"""Durations: a number of seconds, or a timedelta, wherever Python takes one."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias, overload

from menzil.model.errors import UsageError

Seconds: TypeAlias = float | timedelta


@overload
def in_seconds(what: str, value: Seconds) -> float: ...
@overload
def in_seconds(what: str, value: Seconds | None) -> float | None: ...


def in_seconds(what: str, value: Seconds | None) -> float | None:
    """Return the number of seconds; what is no duration at all is refused, its range is for others to judge."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        sentence = f"The {what} must be a number of seconds or a timedelta, not {type(value).__name__}."
        raise UsageError(sentence, hint="give an int, a float or a datetime.timedelta")
    return value
