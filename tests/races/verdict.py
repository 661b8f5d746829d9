"""What must be true of a crowd's history, as a pure function of its ledger and the tables at the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from tests.races.crowd import CHANNELS, Ledger


class Ended(NamedTuple):
    """A row of the archive."""

    id: int
    channel: str
    status: str
    key: str | None
    num_attempts: int
    scheduled_at: datetime | None
    expires_at: datetime | None
    first_leased_at: datetime | None
    ended_at: datetime


class Try(NamedTuple):
    """A row of the view attempts: a lease from its begin to its end."""

    id: int
    attempt: int
    channel: str
    outcome: str
    leased_at: datetime
    ended_at: datetime


History = tuple[Ledger, list[Ended], list[Try]]
ENDED = (
    "select id, channel, status, ordering_key, num_attempts, scheduled_at, expires_at, first_leased_at, ended_at"
    " from menzil.archive order by id"
)
TRIES = "select message_id, attempt, channel, outcome, leased_at, ended_at from menzil.attempts order by leased_at"


def violations(ledger: Ledger, ended: list[Ended], tries: list[Try]) -> list[str]:
    found: list[str] = list(ledger.errors)
    for rule in (_ends, _promises, _leases, _times, _keys, _concurrency, _rates):
        found += [f"{rule.__name__.strip('_')}: {what}" for what in rule((ledger, ended, tries))]
    return found


def _ends(history: History) -> list[str]:
    """Every acknowledged send ends, once; nothing that was rolled back does."""
    ledger, ended, _ = history
    count = Counter(row.id for row in ended)
    sent = {number for number, *_ in ledger.sent}
    wrong = [f"message {n} ended {c} times" for n, c in count.items() if c > 1]
    wrong += [f"message {n} was sent and never ended" for n in sorted(sent - count.keys())]
    wrong += [f"message {n} was rolled back and ended" for n in ledger.undone if n in count]
    return wrong + [f"message {n} ended and was never sent" for n in sorted(count.keys() - sent - set(ledger.undone))]


def _promises(history: History) -> list[str]:
    """At most one accepted settle per message, and what was accepted is what happened."""
    ledger, ended, _ = history
    status = {row.id: row.status for row in ended}
    settled = Counter(ledger.settled)
    wrong = [f"message {n} was completed {c} times" for n, c in settled.items() if c > 1]
    wrong += [f"message {n} was completed and is {status.get(n)}" for n in settled if status.get(n) != "completed"]
    wrong += [
        f"message {n} is completed by nobody" for n, what in status.items() if what == "completed" and n not in settled
    ]
    return wrong + [
        f"message {n} was cancelled and is {status.get(n)}" for n in ledger.cancelled if status.get(n) != "cancelled"
    ]


def _leases(history: History) -> list[str]:
    """One lease at a time, numbered 1, 2, 3."""
    _, ended, tries = history
    of: dict[int, list[Try]] = defaultdict(list)
    for row in tries:
        of[row.id].append(row)
    wrong = []
    for message, rows in of.items():
        rows.sort(key=lambda row: row.attempt)
        if [row.attempt for row in rows] != list(range(1, len(rows) + 1)):
            wrong.append(f"message {message} has attempts {[row.attempt for row in rows]}")
        wrong += [f"message {message} was leased twice at once" for a, b in pairwise(rows) if b.leased_at < a.ended_at]
    return wrong + [
        f"message {row.id} ended with {row.num_attempts} attempts, {len(of[row.id])} are known"
        for row in ended if row.num_attempts != len(of[row.id])
    ]  # fmt: skip


def _times(history: History) -> list[str]:
    """Not before its schedule, not after its expiry."""
    _, ended, tries = history
    row_of = {row.id: row for row in ended}
    wrong = []
    for lease in tries:
        row = row_of.get(lease.id)
        if row and row.scheduled_at and lease.leased_at < row.scheduled_at:
            wrong.append(f"message {row.id} was leased before its time")
        if row and row.expires_at and lease.leased_at >= row.expires_at:
            wrong.append(f"message {row.id} was leased after it expired")
    return wrong


def _keys(history: History) -> list[str]:
    """One of a key in flight; and who was committed before another one began is ended before the other is leased."""
    ledger, ended, tries = history
    row_of = {row.id: row for row in ended}
    spans: dict[tuple[str, str], list[Try]] = defaultdict(list)
    for lease in tries:
        row = row_of.get(lease.id)
        if row and row.key:
            spans[row.channel, row.key].append(lease)
    wrong = [
        f"two of key {key} in flight"
        for key, rows in spans.items()
        for a, b in pairwise(rows)
        if b.leased_at < a.ended_at
    ]
    group: dict[tuple[str, str], list[tuple[float, float, Ended]]] = defaultdict(list)
    for number, channel, key, begun, committed in ledger.sent:
        # Whoever is scheduled joins its key when it is due, not when it was sent.
        if key and number in row_of and row_of[number].scheduled_at is None:
            group[channel, key].append((begun, committed, row_of[number]))
    for place, rows in group.items():
        for _, committed, first in rows:
            for begun, _, second in rows:
                if committed < begun and second.first_leased_at and second.first_leased_at < first.ended_at:
                    wrong.append(f"key {place}: {second.id} was leased before {first.id} ended")
    return wrong


def _concurrency(history: History) -> list[str]:
    """Leases of a channel at any instant."""
    return _each_channel(history, "max_concurrency", _crowded)


def _crowded(channel: str, limit: int, tries: list[Try]) -> list[str]:
    steps = sorted([(row.leased_at, 1) for row in tries] + [(row.ended_at, -1) for row in tries])
    flying = most = 0
    for _, step in steps:
        flying += step
        most = max(most, flying)
    return [f"{most} of channel {channel} at once, {limit} allowed"] if most > limit else []


def _rates(history: History) -> list[str]:
    """Leases of a channel in any window of its interval, wherever it starts."""
    return _each_channel(history, "release_count", _hasty)


def _hasty(channel: str, count: int, tries: list[Try]) -> list[str]:
    window = timedelta(milliseconds=CHANNELS[channel]["release_interval_ms"])
    times = sorted(row.leased_at for row in tries)
    return [
        f"more than {count} of channel {channel} within {b - a}"
        for a, b in zip(times, times[count:], strict=False)
        if b - a < window
    ]


def _each_channel(history: History, limit: str, judge: Callable[[str, int, list[Try]], list[str]]) -> list[str]:
    tries = history[2]
    return [
        wrong
        for channel, limits in CHANNELS.items() if limit in limits
        for wrong in judge(channel, limits[limit], [row for row in tries if row.channel == channel])
    ]  # fmt: skip
