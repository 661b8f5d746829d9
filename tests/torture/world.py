"""Tiny histories written by hand, to see that the checker notices what it should and nothing else.

A world is clean unless it is told otherwise: what is sent is completed, by a consumer who leased and settled it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.torture.checker import Violation, story, violations
from tests.torture.history import Entry
from tests.torture.tables import Channel, Dead, Event, Row, Tables, Try

_START = datetime(2030, 1, 1, tzinfo=UTC)


def at(ms: float) -> datetime:
    """So many milliseconds after the world began, by the clock of its server."""
    return _START + timedelta(milliseconds=ms)


class World:
    """A history and its tables in the making. Histories count milliseconds, too, one for each entry unless told."""

    def __init__(self) -> None:
        self.now = 0
        self.history: list[Entry] = []
        self.ended: list[Row] = []
        self.left: list[Row] = []
        self.tries: list[Try] = []
        self.dead: list[Dead] = []
        self.channels: list[Channel] = []
        self.events: list[Event] = []
        self.places: dict[str, int] = {}
        self.miscounted: list[str] = []

    def note(self, kind: str, who: str = "consumer", **facts: Any) -> None:
        """Write a line of history."""
        self.now += 1
        self.history.append(Entry(who, self.now * 1_000_000, kind, facts))

    def send(self, ref: str = "a", state: str | None = "ok", id: int = 1, channel: str = "c", **options: Any) -> None:
        """A transaction with one message in it."""
        op = len(self.history)
        self.note("send.begin", "sender", op=op, items=[{"ref": ref, "channel": channel, **options}])
        if state is not None:
            self.note(f"send.{state}", "sender", op=op, **({"ids": [id]} if state == "ok" else {}))

    def lease(self, id: int = 1, attempt: int = 1, ref: str = "a", **facts: Any) -> None:
        """A consumer hears that it has a lease."""
        self.note("lease", id=id, attempt=attempt, ref=ref, **facts)

    def settle(self, verb: str = "complete", answer: str = "ok", id: int = 1, attempt: int = 1, **facts: Any) -> None:
        """A consumer settles, and hears how it went."""
        self.note("settle.try", id=id, attempt=attempt, verb=verb, **facts)
        self.note(f"settle.{answer}", id=id, attempt=attempt, verb=verb, **facts)

    def tried(self, outcome: str, leased: float, ended: float, id: int = 1, attempt: int = 1, **facts: Any) -> None:
        """A line of the attempts."""
        values = {"channel": "c", "worker": None, "error": None} | facts
        self.tries.append(
            Try(id, attempt, str(values["channel"]), outcome, at(leased), at(ended), None, values["error"])
        )

    def row(
        self, status: str = "completed", id: int = 1, ref: str = "a", ended: float | None = 20, **facts: Any
    ) -> None:
        """A line of the archive, or of the queue when it did not end."""
        values: dict[str, Any] = dict.fromkeys(Row._fields)
        values |= {"id": id, "ref": ref, "channel": "c", "status": status, "num_attempts": 1, "retry_count": 0}
        values |= {"ended_at": None if ended is None else at(ended), "xid": 700 + id, **facts}
        (self.left if ended is None else self.ended).append(Row(**values))

    def done(self, id: int = 1, ref: str = "a", leased: float = 10, ended: float = 20, **facts: Any) -> None:
        """A message that was leased once, and completed."""
        self.lease(id, ref=ref)
        self.settle(id=id)
        self.tried("completed", leased, ended, id, channel=facts.get("channel", "c"))
        self.row("completed", id, ref, ended, first_leased_at=at(leased), leased_at=at(leased), **facts)

    def channel(self, name: str = "c", **facts: Any) -> None:
        """A channel and its limits."""
        values: dict[str, Any] = dict.fromkeys(Channel._fields)
        values |= {"name": name, "is_endpoint": False, "release_interval_ms": 0, "release_count": 1, "leases": 0}
        self.channels.append(Channel(**(values | {"on_dead": "continue", "messages": 0} | facts)))

    def event(self, kind: str, name: str, ms: float = 0, **new: Any) -> None:
        """A line of the event log."""
        self.events.append(Event(len(self.events) + 1, 900, kind, name, new, at(ms)))

    @property
    def tables(self) -> Tables:
        """What the database holds."""
        return Tables(
            ended=self.ended,
            left=self.left,
            tries=sorted(self.tries, key=lambda one: (one.id, one.attempt)),
            dead=self.dead,
            channels=self.channels,
            events=self.events,
            places=self.places,
            miscounted=self.miscounted,
        )

    def judge(self, plan: Any = None) -> list[Violation]:
        """Ask the checker."""
        return violations(self.history, self.tables, plan)

    def story(self, violation: Violation) -> str:
        """Ask for the story."""
        return story(violation, self.history, self.tables)
