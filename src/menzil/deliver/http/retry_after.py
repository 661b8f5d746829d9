"""When to come back, as the other side wishes it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST = 86_400.0
_NUMBER = re.compile(r"(-?)([0-9]+)", re.ASCII)


def retry_after(value: str | None, date: str | None, now: datetime) -> float | None:
    """Return more than 0 seconds and at most a day, or None: no wait is asked for, or none that can be understood.

    Zero, a negative number and a date that has passed ask for no wait: the retry policy alone decides then.
    A date is compared with the answer's own Date: their clocks may differ, but one clock does not differ from itself.
    """
    if value is None:
        return None
    value = value.strip()
    if number := _NUMBER.fullmatch(value):
        sign, digits = number.groups()
        digits = digits.lstrip("0")
        if sign or not digits:
            return None
        return LONGEST if len(digits) > 5 else min(float(digits), LONGEST)
    until = _date(value)
    if until is None:
        return None
    seconds = (until - ((_date(date) if date else None) or now)).total_seconds()
    return min(seconds, LONGEST) if seconds > 0 else None


def _date(text: str) -> datetime | None:
    if not 8 <= len(text) <= 64:
        return None
    try:
        date = parsedate_to_datetime(text)
        return date if date.tzinfo else date.replace(tzinfo=UTC)  # asctime() and -0000 have none; HTTP means GMT
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
