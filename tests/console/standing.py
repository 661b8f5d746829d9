"""How a queue stands, as rows that two databases can be compared by: without clocks, and without who did it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import psycopg

VIEWS = (
    "channels", "endpoints", "schedules", "settings", "subscriptions", "queue", "dlq", "plans", "archive", "event_log",
    "bridges",
)  # fmt: skip
#: What an undo leaves behind on purpose: history.
HISTORY = ("archive", "event_log")
_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:?\d\d)?")


def standing(dsn: str) -> dict[str, list[Any]]:
    """Every view, as superusers see it; secrets are marks there."""
    with psycopg.connect(dsn) as conn:
        return {view: _rows(conn, view) for view in VIEWS}


def difference(here: dict[str, list[Any]], there: dict[str, list[Any]], leaves: Iterable[str] = ()) -> str:
    """The first row that only one of two has; empty where they stand the same."""
    for view in here.keys() - set(leaves):
        if here[view] != there[view]:
            gone = [row for row in here[view] if row not in there[view]]
            come = [row for row in there[view] if row not in here[view]]
            counts = f" ({len(here[view])} rows and {len(there[view])})"
            return f"{view}: {gone[:1]} is not {come[:1]}{counts}"
    return ""


def _rows(conn: psycopg.Connection, view: str) -> list[Any]:
    which = "where v.event_type not like 'act.%' order by v.id" if view == "event_log" else ""
    rows = conn.execute(f"select to_jsonb(v) from menzil.{view} v {which}").fetchall()
    found = [_plain(row[0]) for row in rows]
    if view in ("event_log", "schedules"):  # given out once each: an act that is undone has used one up
        found = [{name: value for name, value in row.items() if name != "id"} for row in found]
    return sorted(found, key=repr) if view != "event_log" else found


def _plain(value: Any, key: str = "") -> Any:
    if key.endswith("xid"):
        return None
    if key.endswith("_at"):
        return value is not None
    if isinstance(value, dict):
        return {name: _plain(one, name) for name, one in value.items() if name not in ("actor", "via")}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return _CLOCK.sub("a time", value) if isinstance(value, str) else value
