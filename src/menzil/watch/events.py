"""Event types and who gets them, and a tester: which subscriptions would match this payload?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from menzil.model.errors import MenzilError
from menzil.ops import looking, pubsub
from menzil.watch.finding import Run


def listed(run: Run, *, limit: int = 100, after: str = "") -> dict[str, Any]:
    """Return {"event_types", "next_after", "as_of"}: each with {"subscriptions"}."""
    now = run(looking.now())
    rows = run(looking.event_types(limit + 1, after))
    shown = [{**row, "subscriptions": run(looking.subscriptions(500, event_type=row["name"]))} for row in rows[:limit]]
    return {"event_types": shown, "next_after": shown[-1]["name"] if len(rows) > limit else None, "as_of": now}


def tested(run: Run, event_type: str, payload: Any) -> dict[str, Any]:
    """Return {"event_type", "valid", "fault", "hint", "subscriptions"}: each with {"matches", "enabled", "why"}."""
    valid, fault, hint = True, None, None
    try:
        run(pubsub.validate_event(event_type, payload))
    except MenzilError as error:
        valid, fault, hint = False, error.message, error.hint
    told = []
    for row in run(looking.subscriptions(500, event_type=event_type)):
        channel = run(looking.channel(row["endpoint_name"])) or {}
        fits = row["filter"] is None or contains(payload, row["filter"])
        enabled = bool(channel.get("enabled"))
        why = (
            "it takes every event" if row["filter"] is None else "its filter matches" if fits else "its filter differs"
        )
        why = why if enabled else "its endpoint is disabled"
        told.append({**row, "matches": fits and enabled, "enabled": enabled, "why": why})
    return {"event_type": event_type, "valid": valid, "fault": fault, "hint": hint, "subscriptions": told}


def contains(whole: Any, part: Any) -> bool:
    """Whether a JSON document contains another one, as @> of PostgreSQL decides it."""
    if isinstance(whole, list) and not isinstance(part, Mapping | list):  # only at the top: a list contains its values
        return any(_contains(one, part) for one in whole)
    return _contains(whole, part)


def _contains(whole: Any, part: Any) -> bool:
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(
            name in whole and _contains(whole[name], value) for name, value in part.items()
        )
    if isinstance(part, Sequence) and not isinstance(part, str):
        if not isinstance(whole, Sequence) or isinstance(whole, str):
            return False
        return all(any(_contains(one, wanted) for one in whole) for wanted in part)
    if isinstance(whole, Mapping) or (isinstance(whole, Sequence) and not isinstance(whole, str)):
        return False
    return isinstance(whole, bool) == isinstance(part, bool) and bool(whole == part)
