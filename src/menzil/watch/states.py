"""What holds a channel, in a few words, and what a change of its limits would do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

#: Counts of channel_state() stop here.
CAP = 10_000


def sentence(row: Mapping[str, Any], now: datetime) -> str:
    """The state of a channel from a row of channel_state(): "paused by ada 12 min ago", "full 5/5", "at work"."""
    ago = f" {span(now - row['held_since'])} ago" if row["held_since"] is not None else ""
    by = f" by {row['held_actor']}" if row["held_actor"] else ""
    until = row["held_until"]
    left = span(until - now) if until is not None and until > now else None
    match row["held_by"]:
        case "paused" | "disabled" as held:
            # The line of the act was cleaned up, or another transaction has locked the log.
            return f"{held}{by}{ago}" if by or ago else f"{held}; the event log does not say by whom"
        case "released":
            return f"released{ago}, drains"
        case "circuit":
            if until is None:
                return "circuit half open, probing"
            return f"circuit open, probe in {left}" if left else "circuit open, probe due"
        case "rest":
            return f"rests for {left}" if left else "rests"
        case "concurrency":
            return f"full {row['in_flight']}/{row['max_concurrency']}"
        case "rate":
            return f"at its rate, next in {left}" if left else "at its rate"
    if (row["waiting"] or row["in_flight"]) and row["workers"] == 0:
        # What is in flight may be that of a worker that is gone.
        return "no worker serves it" if row["waiting"] else "in flight, no worker serves it"
    if row["in_flight"] or row["waiting"]:
        return "at work" if row["in_flight"] else "waits"
    return f"{number(row['scheduled'])} for later" if row["scheduled"] else "idle"


def predict(row: Mapping[str, Any], **new: Any) -> list[str]:
    """What happens when limits are changed: a sentence for each of max_concurrency, release_count, paused."""
    told = []
    if "max_concurrency" in new:
        told.append(_concurrency(row, new["max_concurrency"]))
    if new.get("release_count") is not None and row["rate_used"] is not None:
        over = row["rate_used"] - new["release_count"]
        if over >= 0:
            told.append(
                f"{number(row['rate_used'])} were leased in the window that runs: nothing starts until it has room."
            )
        else:
            told.append(f"{number(-over)} more may start in the window that runs.")
    if new.get("paused"):
        told.append(f"{number(row['in_flight'])} in flight will finish; {number(row['waiting'])} stay and wait.")
    return told


def _concurrency(row: Mapping[str, Any], limit: int | None) -> str:
    flying, old = row["in_flight"], row["max_concurrency"]
    before = "no limit" if old is None else number(old)
    if limit is None:
        return f"{before} → no limit: as many start as workers take."
    if flying > limit:
        return (
            f"{before} → {number(limit)}: {number(flying)} in flight go on, and nothing starts until "
            f"{number(flying - limit + 1)} of them have finished."
        )
    if flying == limit:
        return (
            f"{before} → {number(limit)}: {number(flying)} in flight go on, and the next starts when one has finished."
        )
    return f"{before} → {number(limit)}: {number(limit - flying)} more may start at once."


def number(value: int, at_least: bool = False) -> str:
    """A count that may have stopped at the cap, or before, where not all was read."""
    return f"{CAP:,}+" if value > CAP else f"{value:,}+" if at_least else f"{value:,}"


def span(distance: Any) -> str:
    """A length of time in one unit, as short as a state needs it."""
    seconds = max(distance.total_seconds(), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or (unit == "min" and seconds >= 90):
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
