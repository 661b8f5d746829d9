"""Everything that is known about one message, in the order of time: what to read when a promise was broken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from tests.torture.history import Entry
from tests.torture.invariants.facts import Violation
from tests.torture.tables import Row, Tables

#: Faults are told when they happened this near to something else of the story, in nanoseconds.
NEAR = 2_000_000_000
MOST = 80


def story(violation: Violation, history: Sequence[Entry], tables: Tables) -> str:
    """Tell the story of the message (or channel, or reference) that a violation is about."""
    subject = violation.subject
    rows = [row for row in (*tables.ended, *tables.left) if subject in (row.id, row.ref)]
    ids = {row.id for row in rows} | ({subject} if isinstance(subject, int) else set())
    refs = {row.ref for row in rows if row.ref} | {str(subject)}
    ops = _sent(history, ids, refs)
    mine = [entry for entry in history if _is_about(entry, ids, refs, ops)]
    shift = _shift(history, tables)
    lines = [(entry.at, f"{entry.who}: {_say(entry, refs)}") for entry in mine]
    lines += [(shift(at), f"database: {text}") for at, text in _stood(rows, ids, tables)]
    if lines:
        first, last = min(lines)[0] - NEAR, max(lines)[0] + NEAR
        faults = [e for e in history if e.kind in ("fault", "fault.over") and first <= e.at <= last]
        lines += [(entry.at, f"{entry.who}: {_say(entry, refs)}") for entry in faults]
    lines.sort()
    start = lines[0][0] if lines else 0
    told = [f"  {(at - start) / 1e9:+10.4f} s  {text}" for at, text in lines]
    if len(told) > MOST:
        told = [*told[: MOST // 2], f"  … {len(told) - MOST} more …", *told[-MOST // 2 :]]
    return "\n".join([f"{violation.invariant}: {violation.sentence}", *told])


def _sent(history: Sequence[Entry], ids: set[int], refs: set[str]) -> set[Any]:
    """Find the sends of these messages, by the id that was given for them, which tells their reference, or by that."""
    begins = {(entry.who, entry["op"]): entry["items"] for entry in history if entry.kind == "send.begin"}
    for entry in history:
        if entry.kind == "send.ok" and not ids.isdisjoint(entry["ids"]):
            items = begins.get((entry.who, entry["op"]), ())
            refs |= {item["ref"] for item, given in zip(items, entry["ids"], strict=False) if given in ids}
    return {op for op, items in begins.items() if any(item["ref"] in refs for item in items)}


def _is_about(entry: Entry, ids: set[int], refs: set[str], ops: set[Any]) -> bool:
    if entry.kind.startswith("send."):
        return (entry.who, entry["op"]) in ops
    if entry.kind.startswith(("fault", "feed")):
        return entry.kind == "feed" and entry.get("table") == "archive" and entry.get("id") in ids
    return entry.get("id") in ids or entry.get("ref") in refs or entry.who in refs


def _say(entry: Entry, refs: set[str]) -> str:
    facts = dict(entry.facts)
    if "items" in facts:
        facts["items"] = [item for item in facts["items"] if item["ref"] in refs] or len(facts["items"])
    if len(facts.get("ids") or ()) > 3:
        facts["ids"] = f"{len(facts['ids'])} ids from {facts['ids'][0]}"
    return " ".join([entry.kind, *(f"{name}={value}" for name, value in facts.items() if value is not None)])


def _stood(rows: Iterable[Row], ids: set[int], tables: Tables) -> Iterator[tuple[datetime, str]]:
    for one in tables.tries:
        if one.id in ids:
            worker = f" by {one.worker}" if one.worker else ""
            yield one.leased_at, f"message {one.id} leased, attempt {one.attempt}, channel {one.channel}{worker}"
            yield one.ended_at, f"message {one.id} attempt {one.attempt} {one.outcome} {one.error or ''}".rstrip()
    for row in rows:
        times = {"scheduled for": row.scheduled_at, "expires": row.expires_at, f"ended {row.status}": row.ended_at}
        for what, at in times.items():
            if at is not None:
                yield at, f"message {row.id} ({row.ref}) {what}, {row.num_attempts} attempts, xid {row.xid}"
        if row.ended_at is None and row.leased_at is not None:
            yield row.leased_at, f"message {row.id} ({row.ref}) leased, and still {row.status}"


def _shift(history: Iterable[Entry], tables: Tables) -> Any:
    """From the server's clock to that of the histories: an answer comes after what it tells, so the least gap is it."""
    leased = {(one.id, one.attempt): _ns(one.leased_at) for one in tables.tries}
    gaps = [
        entry.at - leased[entry["id"], entry["attempt"]]
        for entry in history
        if entry.kind in ("lease", "handle.begin") and (entry["id"], entry["attempt"]) in leased
    ]
    gap = min(gaps, default=0)
    return lambda at: _ns(at) + gap


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1000
