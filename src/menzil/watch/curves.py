"""Series over time from the pulse: one point per step, gaps filled, with marks of what was done meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from menzil.model.errors import UsageError
from menzil.ops import looking, marks, pulse, watch
from menzil.watch.counting import uncounted_since
from menzil.watch.finding import Run

#: Points of one series.
MOST_POINTS = 120

#: Steps that a series may have, in seconds: no step divides a day unevenly, so steps begin at full hours.
STEPS = (60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)

COUNTERS = ("sent", "completed", "failed_tries", "dead", "deferred", "expired", "cancelled")
GAUGES = ("waiting", "in_flight", "oldest_s")
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_BY_THE_MINUTE = timedelta(hours=48)


def curve(
    run: Run,
    channel: str | None = None,
    *,
    since: datetime | timedelta = timedelta(hours=1),
    until: datetime | None = None,
    step: float | None = None,
    marked: bool = True,
) -> dict[str, Any]:
    """Return {"channel", "from", "to", "step_s", "points", "marks", "uncounted_since"}.

    `since` is a time, or how long before now the series begins. Without a step, the shortest that makes at most
    MOST_POINTS points. A point has the counters of its step, the highest gauges, and p50_ms, p95_ms of sent to ended
    and try_p95_ms of a try; gauges and percentiles are None where nothing was measured, and so are counters of steps
    that began after counting stopped, at `uncounted_since`.
    """
    now = run(looking.now())
    end = until or now
    start = now - since if isinstance(since, timedelta) else since
    if start >= end:
        raise UsageError("That span has no length.", hint="let it begin before it ends")
    width = timedelta(seconds=_step((end - start).total_seconds(), step, old=now - start > _BY_THE_MINUTE))
    first = _EPOCH + (start - _EPOCH) // width * width
    found = {row["at"]: row for row in history(run, channel, first, end, width)}
    stopped = uncounted_since(run, now)
    points = []
    while first < end:
        point = _point(first, found.get(first))
        if stopped is not None and first > stopped and first not in found:
            point |= dict.fromkeys(COUNTERS)
        points.append(point)
        first += width
    told = _marks(run, channel, points[0]["at"], end) if marked else []
    return {
        "channel": channel,
        "from": points[0]["at"],
        "to": end,
        "step_s": width.total_seconds(),
        "points": points,
        "marks": told,
        "uncounted_since": stopped,
    }


def history(
    run: Run, channel: str | None, start: datetime, end: datetime, step: timedelta = timedelta(minutes=1)
) -> list[dict[str, Any]]:
    """The steps of the pulse as records."""
    return [asdict(row) for row in run(pulse.pulse_of(channel, start, end, step))]


def _step(span: float, asked: float | None, *, old: bool) -> float:
    step: float
    if asked is None:
        step = next((step for step in STEPS if span / step <= MOST_POINTS and (step >= 3600 or not old)), STEPS[-1])
    elif asked < 60:
        raise UsageError("A step is at least one minute.", hint="write 1m, 5m, 1h or 1d")
    else:
        step = asked
    if span / step > 10_000:
        hint = "choose a longer step or a shorter span; the pulse goes back 90 days"
        raise UsageError("That would be more than 10,000 points.", hint=hint)
    return step


def _point(at: datetime, row: dict[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {"at": at}
    for name in COUNTERS:
        found[name] = row[name] if row else 0
    for name in GAUGES:
        found[name] = row[name] if row else None
    ended, tries = (row["ended_ms"], row["try_ms"]) if row else (None, None)
    found |= {"p50_ms": percentile(ended, 0.5), "p95_ms": percentile(ended, 0.95)}
    return found | {"try_p95_ms": percentile(tries, 0.95)}


def percentile(counts: Sequence[int] | None, share: float) -> float | None:
    """The value below which this share of a histogram lies, within its counter by proportion; None without any.

    Beyond the last bound nothing is known, so that bound is the answer.
    """
    total = sum(counts) if counts else 0
    if not counts or total == 0:
        return None
    left = share * total
    for place, number in enumerate(counts):
        if left <= number:
            low = pulse.BOUNDS_MS[place - 1] if place else 0
            if place == len(pulse.BOUNDS_MS):
                return float(low)
            return round(low + (pulse.BOUNDS_MS[place] - low) * (left / number), 1)
        left -= number
    return float(pulse.BOUNDS_MS[-1])


def summed(histograms: Sequence[Sequence[int] | None]) -> list[int]:
    """Several histograms as one."""
    found = [0] * (len(pulse.BOUNDS_MS) + 1)
    for one in histograms:
        for place, number in enumerate(one or ()):
            found[place] += number
    return found


def _marks(run: Run, channel: str | None, start: datetime, end: datetime) -> list[dict[str, Any]]:
    """Acts, and the first worker of each version, by time."""
    told = run(marks.marks(start, end, entity=channel))
    versions: dict[str, datetime] = {}
    for worker in run(watch.get_worker_status()):
        begun = versions.get(worker.version, worker.started_at)
        versions[worker.version] = min(begun, worker.started_at)
    added = {"id": None, "what": "worker.version", "entity_type": "worker", "actor": None, "via": None}
    told += [
        {**added, "at": at, "entity": version}
        for version, at in versions.items()
        if start <= at < end and len(versions) > 1
    ]
    return sorted(told, key=lambda mark: (mark["at"], mark["id"] or 0))
