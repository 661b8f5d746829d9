"""A history and the final tables, sorted once so that every rule can look things up. Nothing is judged here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.torture.history import Entry
from tests.torture.tables import Channel, Dead, Row, Tables, Try

#: What makes a message the same message: its reference, or its idempotency key in its channel.
Self = tuple[str, ...]
Token = tuple[int, int]


class Violation(NamedTuple):
    """A broken promise: which, of what (a message's id, a reference, a channel), and how."""

    invariant: str
    subject: int | str
    sentence: str


@dataclass(frozen=True)
class Send:
    """One message somebody tried to send, and how that ended: ok, undone, refused or unknown."""

    op: Any
    who: str
    ref: str
    channel: str
    key: str | None
    idem: str | None
    later: bool
    begun: int
    state: str
    acked: int | None
    id: int | None

    @property
    def self(self) -> Self:
        return _self(self.ref, self.channel, self.idem)


def _self(ref: str | None, channel: str, idem: str | None) -> Self:
    return ("key", channel, idem) if idem else ("ref", str(ref))


def self_of(row: Row) -> Self:
    """Say which message a row of the tables is."""
    return _self(row.ref, row.channel, row.idem)


class Facts:
    """Everything in its place."""

    def __init__(self, history: Sequence[Entry], tables: Tables, plan: Any = None) -> None:
        self.tables, self.plan = tables, plan
        self.by_kind: dict[str, list[Entry]] = defaultdict(list)
        for entry in history:
            self.by_kind[entry.kind].append(entry)
        self.sends = list(_sends(self.by_kind))
        self.sends_of = _grouped(self.sends, lambda send: send.self)
        self.sends_by_ref = _grouped(self.sends, lambda send: send.ref)
        self.rows: list[Row] = [*tables.ended, *tables.left]
        self.rows_by_id: dict[int, list[Row]] = _grouped(self.rows, lambda row: row.id)
        self.ended_by_id: dict[int, list[Row]] = _grouped(tables.ended, lambda row: row.id)
        self.tries_by_id: dict[int, list[Try]] = _grouped(tables.tries, lambda row: row.id)
        self.tries_by_token: dict[Token, list[Try]] = _grouped(tables.tries, lambda row: (row.id, row.attempt))
        self.dead_by_id: dict[int, list[Dead]] = _grouped(tables.dead, lambda row: row.id)
        self.channels: dict[str, Channel] = {row.name: row for row in tables.channels}

    def entries(self, *kinds: str) -> Iterator[Entry]:
        """Return all entries of these kinds, in the order of time within each."""
        for kind in kinds:
            yield from self.by_kind.get(kind, ())

    def fate(self, ref: str | None) -> str:
        """Say what is known about the sends of a message: unsent, undone, or that it may well be there."""
        states = {send.state for send in self.sends_by_ref.get(str(ref), ())}
        if not states:
            return "unsent"
        return "undone" if states <= {"undone", "refused"} else "possible"


def token(entry: Entry) -> Token:
    """Return the lease an entry speaks of."""
    return entry["id"], entry["attempt"]


def _grouped(items: Iterable[Any], key: Any) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def _sends(by_kind: dict[str, list[Entry]]) -> Iterator[Send]:
    """Pair every begin with its answer; one that has none is unknown: its sender was killed, or the answer was."""
    answers: dict[tuple[str, Any], Entry] = {}
    for state in ("ok", "undone", "refused", "unknown"):
        for entry in by_kind.get(f"send.{state}", ()):
            answers[entry.who, entry["op"]] = entry
    for begin in by_kind.get("send.begin", ()):
        answer = answers.get((begin.who, begin["op"]))
        state = answer.kind.removeprefix("send.") if answer else "unknown"
        items = begin["items"]
        ids = answer["ids"] if answer is not None and state == "ok" else [None] * len(items)
        acked = answer.at if answer is not None and state == "ok" else None
        for item, given in zip(items, ids, strict=True):
            yield Send(
                op=begin["op"],
                who=begin.who,
                ref=item["ref"],
                channel=item["channel"],
                key=item.get("key"),
                idem=item.get("idem"),
                later=item.get("scheduled_ms") is not None,
                begun=begin.at,
                state=state,
                acked=acked,
                id=given,
            )
