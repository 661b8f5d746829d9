"""A cron expression in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT = {name[:3].lower(): place for place, name in enumerate(MONTHS, 1)}
_SHORT |= {name[:3].lower(): place for place, name in enumerate(DAYS[:7])}


#: Values of a step that are told one by one.
MOST = 6


class Field(NamedTuple):
    """The values of a field, and their names by number."""

    low: int
    high: int
    names: Sequence[str] = ()


MINUTE, HOUR, DAY = Field(0, 59), Field(0, 23), Field(1, 31)
MONTH, WEEKDAY = Field(1, 12, ("", *MONTHS)), Field(0, 6, DAYS)


def words(cron: str) -> str:
    """What the five fields say; the expression itself where they are not five."""
    fields = cron.split()
    if len(fields) != 5:
        return cron
    minute, hour, day, month, weekday = fields
    said = [_clock(minute, hour)]
    days = f"on day {_list(day, DAY)} of the month"
    if day != "*" and weekday != "*":
        # As in cron: where one of the two begins with a star, both must be met.
        both = day.startswith("*") or weekday.startswith("*")
        said.append(f"{days}{', if it is a ' if both else ' or on '}{_list(weekday, WEEKDAY, 'or' if both else 'and')}")
    elif day != "*":
        said.append(days)
    elif weekday != "*":
        said.append(f"on {_list(weekday, WEEKDAY)}")
    elif minute.isdecimal() and hour.isdecimal():
        said.append("every day")
    if month != "*":
        said.append(f"in {_list(month, MONTH)}")
    return " ".join(said)


def _clock(minute: str, hour: str) -> str:
    if minute.isdecimal() and all(part.isdecimal() for part in hour.split(",")):
        return "at " + _joined([f"{int(part):02}:{int(minute):02}" for part in hour.split(",")])
    each = _each(minute, MINUTE)
    if minute == "*":
        first = "every minute"
    elif each:
        first = f"every {each} minutes"
    else:
        first = f"at minute {_list(minute, MINUTE)}"
    if hour == "*":
        return first if minute == "*" or each else f"{first} of every hour"
    hours = _each(hour, HOUR)
    if hours:
        return (
            f"{first} in every hour that {hours} divides" if minute == "*" or each else f"{first} every {hours} hours"
        )
    return f"{first} past hour {_list(hour, HOUR)}"


def _each(field: str, kind: Field) -> int | None:
    """The step of `*/10` where it is the same all the time: `*/7` begins anew with each hour."""
    step = field.removeprefix("*/")
    if field == step or not step.isdecimal() or int(step) < 2 or (kind.high + 1) % int(step):
        return None
    return int(step)


def _list(field: str, kind: Field, last: str = "and") -> str:
    return _joined([one for part in field.split(",") for one in _part(part, kind)], last)


def _part(part: str, kind: Field) -> list[str]:
    span, _, step = part.partition("/")
    first, _, last = span.partition("-")
    if step.isdecimal() and int(step) > 0:
        low, high = (kind.low, kind.high) if span == "*" else (_number(first, kind), _number(last, kind))
        if low is not None and high is not None:
            told = [_name(str(number), kind) for number in range(low, high + 1, int(step))]
            return told if len(told) <= MOST else [*told[:3], f"so on to {told[-1]}"]
    if span == "*":
        return ["every one"]
    return [_name(first, kind) + (f" to {_name(last, kind)}" if last else "")]


def _number(word: str, kind: Field) -> int | None:
    return int(word) if word.isdecimal() else _SHORT.get(word.lower()[:3]) if kind.names else None


def _name(word: str, kind: Field) -> str:
    number = _number(word, kind)
    return kind.names[number] if number is not None and number < len(kind.names) else word


def _joined(parts: list[str], last: str = "and") -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f" {last} " + parts[-1]
