"""Channels as they stand: what holds them, what waits, how fast they go; and whose turn is next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from menzil.model.errors import PermissionDeniedError
from menzil.model.redact import Redactor
from menzil.ops import looking, marks, messages, upkeep, watch, why
from menzil.watch.counting import counted_at, stopped
from menzil.watch.finding import Run
from menzil.watch.redaction import redacted
from menzil.watch.states import sentence

_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_RATED = 5
_DAYS = timedelta(days=7)

#: What a worker with handlers registers for when it serves all endpoints, too.
ENDPOINTS = "(endpoints)"

#: The state of every channel that has anything, in a restored copy of a database.
COPY = "stands still, in a copy"

#: How a list of channels may be sorted, and by what; the last ones are those with the least to do.
SORTS: dict[str, tuple[str, ...]] = {
    "name": (),
    "waiting": ("waiting",),
    "oldest": ("oldest_s",),
    "in_flight": ("in_flight",),
    "rate": ("out_per_minute", "in_per_minute"),
    "dead": ("dead",),
}


def channels(
    run: Run, *, after: str = "", limit: int = 100, contains: str = "", sort: str = "name", held: bool = False
) -> dict[str, Any]:
    """Return {"channels", "next_after", "as_of"}; `next_after` is None on the last page or in any order but by name.

    Each has the columns of channel_state() and {"state", "oldest_s", "in_per_minute", "out_per_minute",
    "failure_share", "spark"}. The rates are None while nothing counts, and so are minutes of the spark.
    """
    now = run(looking.now())
    rows = [row for row in run(why.channel_state()) if contains.casefold() in row["channel"].casefold()]
    rows = [row for row in rows if not held or row["held_by"]]
    if sort == "name":
        rows = sorted((row for row in rows if row["channel"] > after), key=lambda row: str(row["channel"]))
        shown = _told(run, rows[:limit], now)
    else:
        every = _told(run, rows, now)
        shown = sorted(every, key=lambda row: _order(row, sort))[:limit]
    more = sort == "name" and len(rows) > limit
    return {"channels": shown, "next_after": shown[-1]["channel"] if more else None, "as_of": now}


def _order(row: dict[str, Any], sort: str) -> tuple[Any, ...]:
    return (*(-(row[column] or 0) for column in SORTS[sort]), row["channel"])


def channel(run: Run, name: str, *, upcoming: int = 20, redactor: Redactor | None = None) -> dict[str, Any]:
    """Return one channel: its row of channels(), its limits, {"next", "blocked", "served_by", "acts"}.

    `next` and `blocked` are None for a role that may not read messages, `served_by` for one that may not see workers.
    """
    now = run(looking.now())
    (row,) = _told(run, run(why.channel_state(name)), now)
    limits = run(looking.channel(name)) or {}
    acts = run(marks.marks(now - _DAYS, now + _MINUTE, entity=name, limit=10))
    return {
        **limits,
        **row,
        "next": _permitted(lambda: upcoming_messages(run, name, upcoming)),
        "blocked": _permitted(lambda: [redacted(one, redactor) for one in run(looking.blocked_keys(name, 20))]),
        "served_by": _permitted(lambda: served_by(run, name, is_endpoint=row["is_endpoint"])),
        "acts": acts,
        "as_of": now,
    }


def _permitted(ask: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]] | None:
    try:
        return ask()
    except PermissionDeniedError:
        return None


def upcoming_messages(run: Run, name: str, limit: int) -> list[dict[str, Any]]:
    """What the channel would hand out next, without bodies."""
    names = ("id", "priority", "ordering_key", "attempt", "created_at", "scheduled_at", "expires_at", "correlation_id")
    return [{word: getattr(one, word) for word in names} for one in run(messages.peek(name, limit))]


def served_by(run: Run, name: str, *, is_endpoint: bool) -> list[dict[str, Any]]:
    """Workers that are alive and take messages of this channel."""
    wanted = {name, ENDPOINTS} if is_endpoint else {name}
    return [
        asdict(worker)
        for worker in run(watch.get_worker_status())
        if worker.status in ("alive", "stopping")
        and (is_endpoint if worker.channels is None else not wanted.isdisjoint(worker.channels))
    ]


def turns(run: Run, limit: int = 50) -> dict[str, Any]:
    """Return {"turns", "skipped", "as_of"}: the next leases over all channels, and who is passed over and why."""
    now = run(looking.now())
    copy = _stands_still(run)
    ahead = [] if copy else run(why.turns(limit))
    skipped = [
        {
            "channel": row["channel"],
            "held_by": row["held_by"],
            "waiting": row["waiting"],
            "at_least": row["at_least"],
            "until": row["held_until"],
            "state": COPY if copy else sentence(row, now),
        }
        for row in run(why.channel_state())
        if (row["held_by"] or copy) and row["waiting"]
    ]
    return {"turns": ahead, "skipped": skipped, "as_of": now}


def _told(run: Run, rows: list[dict[str, Any]], now: datetime) -> list[dict[str, Any]]:
    """The rows with what the pulse and the clock add to them."""
    if not rows:
        return []
    full = now.replace(second=0, microsecond=0)
    start = (now - _HOUR + _MINUTE).replace(second=0, microsecond=0)
    asked = marks.minutes([row["channel"] for row in rows], start, (full - _RATED * _MINUTE, full))
    history = {row["channel"]: row for row in run(asked)}
    counted = counted_at(run)
    since = stopped(counted, now)
    is_counted = since is None and (counted is not None or bool(history))
    empty = [None if since is not None and start + place * _MINUTE > since else 0 for place in range(60)]
    told = [{**row, **_added(row, history.get(row["channel"]), now, is_counted, empty)} for row in rows]
    if _stands_still(run):
        told = [row if row["state"] == "idle" else {**row, "state": COPY} for row in told]
    return told


def _stands_still(run: Run) -> bool:
    """Whether the database is a copy: then no dequeue gets anything, however the channels are."""
    return run(upkeep.copy_notice()) is not None


def _added(
    row: dict[str, Any], hour: dict[str, Any] | None, now: datetime, is_counted: bool, empty: list[int | None]
) -> dict[str, Any]:
    spark = [*empty]
    for minute, completed in zip(hour["minutes"], hour["completed_then"], strict=True) if hour else ():
        spark[min(minute, 59)] = completed
    ended, failed = (hour["completed"], hour["failed_tries"]) if hour else (0, 0)
    oldest = row["oldest_at"]
    return {
        "state": sentence(row, now),
        "oldest_s": None if oldest is None else max((now - oldest).total_seconds(), 0.0),
        "in_per_minute": None if not is_counted else round(hour["sent_lately"] / _RATED, 2) if hour else 0.0,
        "out_per_minute": None if not is_counted else round(hour["completed_lately"] / _RATED, 2) if hour else 0.0,
        "failure_share": round(failed / (ended + failed), 4) if ended + failed else None,
        "spark": spark,
    }
