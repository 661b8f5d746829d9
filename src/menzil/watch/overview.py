"""The first page: a number for each thing that matters, what needs an operator, and the channels that are worst off."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from menzil.ops import looking, watch
from menzil.ops.watch import Metric
from menzil.watch import doctor
from menzil.watch.counting import stopped
from menzil.watch.curves import history, percentile, summed
from menzil.watch.finding import Run

#: Channels that the overview names.
WORST = 10
_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
#: Full minutes over which a rate is taken.
_RATED = 5
_RATES = ("sent", "completed", "failed_tries", "dead")

#: Dead letters that metrics() counts: from here on there may be more, in all and of each channel.
DEAD = 100_000

#: The tiles, in order, and the metric or the column of the pulse that each shows.
TILES = ("waiting", "oldest_s", "in_flight", "dead", "p95_ms", "workers_alive")


def overview(run: Run) -> dict[str, Any]:
    """Return the tiles, {"rates", "sparks", "findings", "worst_channels", "scheduled", "behind_key", "as_of"}.

    Three calls: metrics(), health_check() and the pulse of the last hour.
    """
    now = run(looking.now())
    numbers = run(watch.metrics())
    findings = [asdict(finding) for finding in doctor.health(run) if finding.level != "ok"]
    minutes = history(run, None, now - _HOUR, now)
    found = heads(numbers, minutes, now)
    return {
        **found,
        "sparks": _sparks(minutes, now, found["uncounted_since"]),
        "findings": findings,
        "worst_channels": worst(numbers)[:WORST],
        "as_of": now,
    }


def heads(numbers: list[Metric], minutes: list[dict[str, Any]], now: datetime) -> dict[str, Any]:
    """The tiles and rates, from metrics() and the minutes of the last hour.

    Rates are None where nothing counts: since `uncounted_since`, or ever.
    """
    single = {one.name: one.value for one in numbers if not one.labels}
    ages = {one.labels["job"]: one.value for one in numbers if one.name == "job_age_seconds"}
    counted = now - timedelta(seconds=ages["pulse"]) if "pulse" in ages else None
    since = stopped(counted, now)
    is_counted = since is None and (counted is not None or bool(minutes))
    depth = {one.labels["status"]: one.value for one in numbers if one.name == "queue_depth"}
    return {
        "waiting": int(depth.get("pending", 0)),
        "oldest_s": single.get("oldest_message_age_seconds", 0.0),
        "in_flight": int(single.get("in_flight", 0)),
        "dead": int(single.get("dlq_depth", 0)),
        "p95_ms": percentile(summed([row["ended_ms"] for row in minutes]), 0.95),
        "workers_alive": int(single.get("workers_alive", 0)),
        "scheduled": int(single.get("scheduled", 0)),
        "behind_key": int(single.get("waiting_for_ordering_key", 0)),
        "rates": rates(minutes, now) if is_counted else dict.fromkeys(_RATES),
        "uncounted_since": since,
    }


def dead(found: dict[str, Any]) -> str:
    """The number of dead letters in words; a plus where there may be more."""
    return f"{found['dead']:,}" + ("+" if found["dead"] >= DEAD else "")


def rates(minutes: list[dict[str, Any]], now: datetime) -> dict[str, float | None]:
    """Messages per minute over the last full minutes."""
    full = now.replace(second=0, microsecond=0)
    recent = [row for row in minutes if full - _RATED * _MINUTE <= row["at"] < full]
    return {name: round(sum(row[name] for row in recent) / _RATED, 2) for name in _RATES}


def worst(numbers: list[Metric]) -> list[dict[str, Any]]:
    """Channels with anything in them, by the age of what waits longest."""
    found: dict[str, dict[str, Any]] = defaultdict(
        lambda: {"waiting": 0, "at_least": False, "oldest_s": None, "in_flight": 0, "dead": 0, "circuit": None}
    )
    columns = {
        "queue_depth_by_endpoint": "waiting",
        "oldest_message_age_seconds_by_endpoint": "oldest_s",
        "in_flight_by_endpoint": "in_flight",
        "dlq_depth_by_endpoint": "dead",
    }
    for one in numbers:
        column = columns.get(one.name)
        if column is not None:
            found[one.labels["endpoint"]][column] = one.value if column == "oldest_s" else int(one.value)
        elif one.name == "queue_depth_by_endpoint_is_lower_bound":
            found[one.labels["endpoint"]]["at_least"] = one.value == 1
        elif one.name == "endpoint_circuit_state":
            found[one.labels["endpoint"]]["circuit"] = {0: "closed", 1: "half_open", 2: "open"}[int(one.value)]
    rows = [{"channel": name, **row} for name, row in found.items()]
    alive = [row for row in rows if row["waiting"] or row["in_flight"] or row["dead"] or row["circuit"] == "open"]
    return sorted(alive, key=lambda row: (-(row["oldest_s"] or 0), -row["dead"], -row["waiting"], row["channel"]))


def _is_after(minute: datetime, uncounted_since: datetime | None) -> bool:
    return uncounted_since is not None and minute > uncounted_since


def _sparks(
    minutes: list[dict[str, Any]], now: datetime, uncounted_since: datetime | None
) -> dict[str, list[float | None]]:
    """Sixty minutes of each tile, the oldest first; None where nothing was measured, or nothing counts any more."""
    known = {row["at"]: row for row in minutes}
    first = (now - _HOUR + _MINUTE).replace(second=0, microsecond=0)
    rows = [known.get(first + place * _MINUTE) for place in range(60)]
    found: dict[str, list[float | None]] = {
        name: [None if row is None else row[name] for row in rows] for name in ("waiting", "oldest_s", "in_flight")
    }
    for name in ("sent", "completed", "failed_tries", "dead"):
        found[name] = [
            row[name] if row is not None else None if _is_after(first + place * _MINUTE, uncounted_since) else 0
            for place, row in enumerate(rows)
        ]
    found["p95_ms"] = [None if row is None else percentile(row["ended_ms"], 0.95) for row in rows]
    return found
