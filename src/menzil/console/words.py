"""Numbers and times as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

#: Where counts stop.
CAP = 10_000


def count(value: int | float | None) -> str:
    """A number with commas; a capped one says so."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if isinstance(value, float) else f"{value:,}"


def capped(value: int | None, at_least: bool = False, cap: int = CAP) -> str:
    """A count that stops behind `cap`, or before, where not all was read: then it is a lower bound."""
    return "–" if value is None else f"{cap:,}+" if value > cap else f"≥ {value:,}" if at_least else f"{value:,}"


def aged(seconds: float) -> str:
    """How old a page is, from five seconds on; console.js says the same."""
    return f", {seconds:.0f} s old" if seconds >= 5 else ""


def many(number: int, thing: str, things: str | None = None) -> str:
    """A number with its word: 1 message, 1,200 messages."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def span(seconds: float | None) -> str:
    """A length of time in its two largest units; a short one in one."""
    if seconds is None:
        return "–"
    if seconds < 0.0995:
        return f"{max(seconds, 0) * 1000:.3g} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def rate(value: float | None) -> str:
    """Messages per minute."""
    if not value:
        return "0" if value is not None else "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def share(value: float | None) -> str:
    """A share as percent."""
    return "–" if value is None else f"{value * 100:.2g} %" if value < 0.995 else f"{value * 100:.0f} %"


def is_id(text: str) -> bool:
    """Whether a text is the id of a message."""
    return text.isascii() and text.isdecimal()


def size(value: int | None) -> str:
    """A number of bytes."""
    if value is None:
        return "–"
    for limit, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value} B"


def clock(at: datetime) -> str:
    """The time of the day in UTC."""
    return at.astimezone(UTC).strftime("%H:%M:%S")


def day_clock(at: datetime) -> str:
    """The time of the day in UTC, with the date unless it is today's."""
    there = at.astimezone(UTC)
    return there.strftime("%H:%M:%S" if there.date() == datetime.now(UTC).date() else "%d %b %Y %H:%M:%S")


def exact(at: datetime | None) -> str:
    """A point in time to the millisecond, in UTC."""
    if at is None:
        return "–"
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{at.microsecond // 1000:03d} UTC"


def iso(at: datetime) -> str:
    """A point in time as programs write it."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def relative(at: datetime, now: datetime | None = None) -> str:
    """How long ago, or in how long. The script of the page writes the same words."""
    seconds = (at - (now or datetime.now(UTC))).total_seconds()
    whole = abs(seconds)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if whole >= 2 * length:
            return f"in {whole / length:.0f} {unit}" if seconds > 0 else f"{whole / length:.0f} {unit} ago"
    if whole < 1:
        return "now"
    return f"in {whole:.0f} s" if seconds > 0 else f"{whole:.0f} s ago"


def is_past(at: datetime) -> bool:
    """Whether this time has come: then nothing is said to wait for it."""
    return at <= datetime.now(UTC)


def is_typed(text: str) -> bool:
    """Whether a repair is a command or a statement, which is shown letter by letter."""
    return text.split(" ", 1)[0] in ("menzil", "psql", "select", "call", "alter", "create")


def sentence(text: str) -> str:
    """A hint as a sentence. Hints of the client begin small and have no stop; a command stays as it is typed."""
    if is_typed(text) or not text:
        return text
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?:;)`…" else ".")


def moment(at: Any) -> Markup:
    """A time on a page: relative, with the exact one in UTC beside it for programs, mice and screen readers."""
    if not isinstance(at, datetime):
        return Markup('<span class="none">–</span>')
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(at), exact(at), relative(at))
