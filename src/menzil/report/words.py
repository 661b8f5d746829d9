"""What is wrong, in sentences: the first thing that the page says."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime

from menzil.report.charts import svg
from menzil.report.figures import ENOUGH, Figures, Row, due, is_silent, share

#: Endpoints, causes and circuits that are named; the others are counted.
MOST = 5
#: A latency that grew by less, or that is shorter than this, is no news.
GREW, WORTH_IT = 2.0, 1.0


@dataclass(frozen=True)
class Trouble:
    """One thing that is wrong; `command` repairs it, where a command can."""

    sentence: str
    command: str | None = None


def count(number: int, thing: str, things: str | None = None) -> str:
    """A number with its word: 1 message, 1,200 messages."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def percent(value: float | None) -> str:
    """A share as people say it. What is not all is never shown as 100 %."""
    if value is None:
        return "–"
    shown = f"{100 * value:.2f}"
    if value < 1 and shown == "100.00":
        shown = "99.99"
    return f"{shown.rstrip('0').rstrip('.')} %"


def when(at: datetime) -> str:
    """A time for people."""
    return at.astimezone(UTC).strftime("%d %b %Y %H:%M")


def troubles(figures: Figures) -> list[Trouble]:
    """All that is wrong, the worst first; empty when nothing is."""
    if not figures.total["sent"]:
        return []
    return [*_silent(figures), *_failing(figures), *_letters(figures), *_open_circuits(figures), *_goal(figures)]


def all_well(figures: Figures) -> str:
    """What to say when there are no troubles."""
    wanted = due(figures.total)
    if not wanted:
        return f"Nothing is wrong: all {count(figures.total['sent'], 'message')} were cancelled."
    within = percent(share(figures.total["within"], wanted))
    if figures.total["completed"] == wanted:
        told = "The message was delivered" if wanted == 1 else f"All {wanted:,} messages were delivered"
    else:
        told = f"{figures.total['completed']:,} of {count(wanted, 'message')} were delivered"
    return f"Nothing is wrong. {told}, {within} within {svg.unit(figures.slo.seconds)}."


def redrive_command(row: Row) -> str:
    """The command that sends the dead letters of a cause once more."""
    where = f"--endpoint {shlex.quote(row['channel'])}" if row["endpoints"] == 1 else "--all"
    return f"menzil dlq redrive {where} --cause {shlex.quote(row['cause'])} --yes"


def left(figures: Figures, row: Row) -> int:
    """How many dead letters of a cause can still be redriven; without a database that knows, all of them."""
    known = figures.redrivable
    return int(row["messages"]) if known is None else min(known.get(row["cause"], 0), int(row["messages"]))


def _silent(figures: Figures) -> list[Trouble]:
    rows = [row for row in figures.endpoints if is_silent(row)]
    found = []
    for row in rows[:MOST]:
        fates = [count(row["failed"], "dead letter")] if row["failed"] else []
        fates += [f"{row['expired']:,} expired"] if row["expired"] else []
        sent = count(due(row), "message")
        found.append(
            Trouble(f"{row['channel']} delivered nothing: {sent}, {' and '.join(fates)}.{_then(figures, row)}")
        )
    more = figures.silent_count - len(found)
    if more > 0:
        found.append(Trouble(f"{count(more, 'more endpoint')} delivered nothing."))
    return found


def _failing(figures: Figures) -> list[Trouble]:
    rows = [row for row in figures.endpoints if not is_silent(row) and due(row) >= ENOUGH]
    worse = [row for row in rows if (share(row["completed"], due(row)) or 0) < figures.slo.share]
    found = []
    for row in worse[:MOST]:
        lost = due(row) - row["completed"]
        told = percent(share(row["completed"], due(row)))
        found.append(
            Trouble(f"{row['channel']} delivered {told}: {lost:,} of {due(row):,} not delivered.{_then(figures, row)}")
        )
    if len(worse) > MOST:
        found.append(Trouble(f"{count(len(worse) - MOST, 'more endpoint')} delivered less than the goal."))
    return found


def _then(figures: Figures, row: Row) -> str:
    before = figures.endpoints_before.get(row["channel"])
    if before is None or not due(before):
        return ""
    return f" In the period before it delivered {percent(share(before['completed'], due(before)))}."


def _letters(figures: Figures) -> list[Trouble]:
    found = []
    for row in figures.errors[:MOST]:
        where = row["channel"] if row["endpoints"] == 1 else f"{row['endpoints']:,} endpoints"
        error = row["cause"] or "no error was given"
        told = (
            f"{count(row['messages'], 'dead letter')} of {where}: {error}. The last was at {when(row['last_at'])} UTC."
        )
        still = left(figures, row)
        if still < row["messages"]:
            told += f" {still:,} of them can still be redriven." if still else " None of them waits to be redriven."
        found.append(Trouble(told, redrive_command(row) if still else None))
    more = figures.error_count - len(found)
    if more > 0:
        found.append(Trouble(f"Dead letters have {count(more, 'more cause')}, listed below."))
    return found


def _open_circuits(figures: Figures) -> list[Trouble]:
    rows = [row for row in figures.incidents if row["closed_at"] is None]
    found = [
        Trouble(f"The circuit of {row['channel']} is open since {when(row['opened_at'])} UTC.") for row in rows[:MOST]
    ]
    if len(rows) > MOST:
        found.append(Trouble(f"{count(len(rows) - MOST, 'more circuit')} {_are(len(rows) - MOST)} open."))
    return found


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _goal(figures: Figures) -> list[Trouble]:
    found = []
    attained, goal = share(figures.total["within"], due(figures.total)), figures.slo
    if attained is not None and attained < goal.share:
        limit = svg.unit(goal.seconds)
        told = f"The goal was missed: {percent(attained)} were delivered within {limit}, not {percent(goal.share)}."
        found.append(Trouble(told))
    now, then = figures.total["delivered_s"], (figures.before or {}).get("delivered_s")
    if now and then and now[2] > WORTH_IT and now[2] > GREW * then[2]:
        slow, was = svg.seconds(now[2]), svg.seconds(then[2])
        found.append(Trouble(f"Deliveries are slower: 99 % took up to {slow}, in the period before {was}."))
    return found
