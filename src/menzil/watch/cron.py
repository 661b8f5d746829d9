"""A cron expression in words."""

from __future__ import annotations

from collections.abc import Sequence

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT = {name[:3].lower(): place for place, name in enumerate(MONTHS, 1)}
_SHORT |= {name[:3].lower(): place for place, name in enumerate(DAYS[:7])}


def words(cron: str) -> str:
    """What the five fields say; the expression itself where they are not five."""
    fields = cron.split()
    if len(fields) != 5:
        return cron
    minute, hour, day, month, weekday = fields
    said = [_clock(minute, hour)]
    if day != "*" and weekday != "*":
        said.append(f"on day {_list(day)} of the month or on {_list(weekday, DAYS)}")
    elif day != "*":
        said.append(f"on day {_list(day)} of the month")
    elif weekday != "*":
        said.append(f"on {_list(weekday, DAYS)}")
    elif minute.isdecimal() and hour.isdecimal():
        said.append("every day")
    if month != "*":
        said.append(f"in {_list(month, ['', *MONTHS])}")
    return " ".join(said)


def _clock(minute: str, hour: str) -> str:
    if minute.isdecimal() and all(part.isdecimal() for part in hour.split(",")):
        return "at " + _joined([f"{int(part):02}:{int(minute):02}" for part in hour.split(",")])
    if minute == "*" and hour == "*":
        return "every minute"
    if minute.startswith("*/") and minute[2:].isdecimal():
        first = f"every {int(minute[2:])} minutes"
    elif minute == "*":
        first = "every minute"
    else:
        first = f"at minute {_list(minute)}"
    if hour == "*":
        return first if minute.startswith("*/") else f"{first} of every hour"
    if hour.startswith("*/") and hour[2:].isdecimal():
        return f"{first} of every {int(hour[2:])}. hour"
    return f"{first} past hour {_list(hour)}"


def _list(field: str, names: Sequence[str] | None = None) -> str:
    return _joined([_part(part, names) for part in field.split(",")])


def _part(part: str, names: Sequence[str] | None) -> str:
    span, _, step = part.partition("/")
    first, _, last = span.partition("-")
    said = "every one" if span == "*" else _name(first, names) + (f" to {_name(last, names)}" if last else "")
    return f"{said}, each {step}." if step else said


def _name(word: str, names: Sequence[str] | None) -> str:
    number = _SHORT.get(word.lower()[:3]) if names and not word.isdecimal() else int(word) if word.isdecimal() else None
    return names[number] if names and number is not None and number < len(names) else word


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
