"""Dead letters by cause: how many, whose, since when, and what was changed just before it began."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from menzil.model.redact import Redactor
from menzil.ops import history, looking, looking_dlq, marks, watch
from menzil.watch.finding import Run
from menzil.watch.redaction import redacted

#: Groups of an endpoint and a cause that a page lists, and that one cause is looked for among.
MOST, EVERY = 1_000, 10_000

#: How long before the first letter a change may lie to be told.
NEAR = timedelta(hours=6)
#: The spark: a day by the half hour.
SPAN, STEPS = timedelta(hours=24), 48

#: What is told of each endpoint of a cause, by the names of menzil.dlq_causes.
_OF_ENDPOINT = ("endpoint_name", "failed_count", "oldest_failed_at", "newest_failed_at", "sample_dlq_id")

#: Events that say what became of a message or a circuit, not what an operator changed.
RESULTS = ("circuit.", "redrive", "replay", "plan.", "message.", "channel.purged")


def causes(
    run: Run, *, endpoint: str | None = None, redactor: Redactor | None = None, most: int = MOST
) -> dict[str, Any]:
    """Return {"causes", "dead", "cut", "as_of"}, the most frequent first.

    `cut`: there are more causes than these. `dead` counts the letters of all.

    Each has {"cause_hash", "cause", "error_class", "failed_count", "endpoints", "oldest_failed_at", "newest_failed_at",
    "sample_dlq_id", "spark", "changed"}. `endpoints` has the numbers of each endpoint by itself: {"endpoint_name",
    "failed_count", "oldest_failed_at", "newest_failed_at", "sample_dlq_id"}. `changed` is the nearest act or new worker
    version before the first letter that could concern the cause, or None.
    """
    now = run(looking.now())
    found, cut = _grouped(run, endpoint, most)
    start = now - SPAN
    sparks: dict[str, list[int]] = defaultdict(lambda: [0] * STEPS)
    for row in run(looking_dlq.deaths(start, SPAN / STEPS)):
        sparks[row["cause_hash"]][min(int((row["at"] - start) / (SPAN / STEPS)), STEPS - 1)] += row["letters"]
    told = _changes(run, found, now)
    shown = [
        {**redacted(one, redactor), "spark": sparks[one["cause_hash"]], "changed": told.get(one["cause_hash"])}
        for one in found
    ]
    dead = _failed(run, endpoint) if cut else sum(one["failed_count"] for one in shown)
    return {"causes": shown, "dead": dead, "cut": cut, "as_of": now}


def cause(
    run: Run,
    cause_hash: str,
    *,
    endpoint: str | None = None,
    before: int | None = None,
    limit: int = 50,
    redactor: Redactor | None = None,
) -> dict[str, Any]:
    """Return the cause as causes() does, or its letters alone where all were redriven; {"letters", "next_before"}.

    `at_least`: it is none of the most frequent causes, and `failed_count` counts the letters that are listed.
    """
    known = causes(run, endpoint=endpoint, redactor=redactor)
    if known["cut"]:
        known = causes(run, endpoint=endpoint, redactor=redactor, most=EVERY)
    one = next((row for row in known["causes"] if row["cause_hash"] == cause_hash), None)
    place = 2**63 - 1 if before is None else before
    rows = run(looking_dlq.letters_of_cause(cause_hash, limit=limit + 1, endpoint=endpoint, before=place))
    shown = [redacted(row, redactor) for row in rows[:limit]]
    listed = sum(row["status"] == "failed" for row in rows)
    return {
        **(one or {"cause_hash": cause_hash, "cause": None, "failed_count": listed, "endpoints": []}),
        "at_least": one is None and listed > 0,
        "letters": shown,
        "next_before": shown[-1]["id"] if len(rows) > limit else None,
        "as_of": known["as_of"],
    }


def _failed(run: Run, endpoint: str | None) -> int:
    rows = run(history.dlq_summary())
    return sum(row["failed_count"] for row in rows if endpoint in (None, row["endpoint_name"]))


def _grouped(run: Run, endpoint: str | None, most: int) -> tuple[list[dict[str, Any]], bool]:
    """The causes, and whether there are more groups than were asked for."""
    rows = run(history.dlq_causes(endpoint, min(most + 1, EVERY)))
    found: dict[str, dict[str, Any]] = {}
    for row in rows[:most]:
        one = found.setdefault(
            row["cause_hash"],
            {
                "cause_hash": row["cause_hash"],
                "cause": row["cause"],
                "error_class": row["error_class"],
                "failed_count": 0,
                "endpoints": [],
                **{name: row[name] for name in ("oldest_failed_at", "newest_failed_at", "sample_dlq_id")},
            },
        )
        one["failed_count"] += row["failed_count"]
        one["endpoints"].append({name: row[name] for name in _OF_ENDPOINT})
        one["oldest_failed_at"] = min(one["oldest_failed_at"], row["oldest_failed_at"])
        one["newest_failed_at"] = max(one["newest_failed_at"], row["newest_failed_at"])
    causes = sorted(found.values(), key=lambda one: (-one["failed_count"], one["cause_hash"]))
    return causes, len(rows) > most or len(rows) >= EVERY


def _changes(run: Run, causes: list[dict[str, Any]], now: datetime) -> dict[str, dict[str, Any]]:
    """What was changed last before each cause began, by its hash. A change of another channel is not told."""
    if not causes:
        return {}
    told = run(marks.marks(min(one["oldest_failed_at"] for one in causes) - NEAR, now, limit=marks.MOST))
    acts = [one for one in told if not one["what"].startswith(RESULTS)]
    added = {"id": None, "what": "worker.started", "entity_type": "worker", "actor": None, "via": None}
    acts += [
        {**added, "at": one.started_at, "entity": f"{one.worker}, version {one.version}"}
        for one in run(watch.get_worker_status())
    ]
    found = {}
    for cause in causes:
        at, whose = cause["oldest_failed_at"], {one["endpoint_name"] for one in cause["endpoints"]}
        near = [one for one in acts if at - NEAR <= one["at"] <= at and _concerns(one, whose)]
        if near:
            last = max(near, key=lambda one: one["at"])
            found[cause["cause_hash"]] = {**last, "before_s": (at - last["at"]).total_seconds()}
    return found


def _concerns(act: dict[str, Any], channels: set[str]) -> bool:
    return act["entity_type"] not in ("channel", "endpoint") or act["entity"] in channels
