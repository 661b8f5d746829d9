"""Who did what: the event log as people look through it."""

from __future__ import annotations

from typing import Any

from menzil.model.redact import Redactor
from menzil.ops import looking_events
from menzil.watch.finding import Run
from menzil.watch.redaction import redacted


def audit(
    run: Run,
    *,
    limit: int = 50,
    before: int | None = None,
    what: str | None = None,
    entity: str | None = None,
    actor: str | None = None,
    via: str | None = None,
    redactor: Redactor | None = None,
) -> dict[str, Any]:
    """Return {"events", "next_before"}, newest first; each event with {"changes": [{"name", "old", "new"}]}."""
    found = run(looking_events.events(limit=limit + 1, before=before, what=what, entity=entity, actor=actor, via=via))
    end = found[limit - 1]["id"] if len(found) > limit else None
    if end is None and any(word is not None for word in (what, entity, actor, via)):
        end = run(looking_events.reach(before))
    shown = [redacted(row, redactor) for row in found[:limit]]
    return {
        "events": [{**row, "changes": changes(row["old_value"], row["new_value"])} for row in shown],
        "next_before": end,
    }


def changes(old: Any, new: Any) -> list[dict[str, Any]]:
    """What an act changed, name by name; keys that are the same on both sides are left out."""
    before, after = (
        value if isinstance(value, dict) else {} if value is None else {"value": value} for value in (old, new)
    )
    names = [*before, *(name for name in after if name not in before)]
    return [
        {"name": name, "old": before.get(name), "new": after.get(name)}
        for name in names
        if name not in before or name not in after or before[name] != after[name]
    ]
