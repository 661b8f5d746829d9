"""The book: what the demo sent and how each message should end, kept apart from the database it is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import psycopg

ENDS = ("completed", "failed", "expired", "cancelled")


@dataclass(frozen=True)
class Entry:
    """One message that was sent."""

    channel: str
    end: str


@dataclass
class Book:
    """Every message by its id."""

    entries: dict[int, Entry] = field(default_factory=dict)

    def sent(self, channel: str, *ids: int, end: str = "completed") -> int:
        """Write down messages and how they should end; return the last id. An id that is there already is a repeat."""
        assert end in ENDS
        for message_id in ids:
            self.entries.setdefault(message_id, Entry(channel, end))
        return ids[-1]

    def differences(self, conn: psycopg.Connection[Any]) -> list[str]:
        """What does not add up between this book and the database, in sentences; empty when all does."""
        archive = conn.execute("select id, channel, status from menzil.archive").fetchall()
        rows = Counter(row[0] for row in archive)
        found = {message_id: Entry(channel, status) for message_id, channel, status in archive}
        live = dict(conn.execute("select id, status from menzil.queue").fetchall())
        tries = Counter(
            row[0] for row in conn.execute("select message_id from menzil.attempts where outcome = 'completed'")
        )
        wrong = [f"message {key} ended {count} times" for key, count in rows.items() if count > 1]
        wrong += [f"message {key} was never sent, and is there" for key in (found.keys() | live) - self.entries.keys()]
        for key, entry in self.entries.items():
            if key in live:
                wrong.append(f"message {key} of {entry.channel} is still {live[key]}")
            elif key not in found:
                wrong.append(f"message {key} of {entry.channel} is lost")
            elif found[key] != entry:
                wrong.append(f"message {key} of {entry.channel} should be {entry.end}, and is {found[key].end}")
            elif tries[key] != (entry.end == "completed"):
                wrong.append(f"message {key} of {entry.channel} succeeded {tries[key]} times")
        return wrong

    def table(self, conn: psycopg.Connection[Any]) -> list[str]:
        """What was sent, by this book, beside how it ended, by the archive; one line per channel, and the sum."""
        query = "select channel, status, count(*) from menzil.archive group by channel, status"
        ended = {(channel, status): count for channel, status, count in conn.execute(query).fetchall()}
        sent = Counter(entry.channel for entry in self.entries.values())
        channels = sorted(sent.keys() | {channel for channel, _ in ended})
        lines = [_line("channel", "sent", *ENDS)]
        lines += [_line(name, sent[name], *(ended.get((name, end), 0) for end in ENDS)) for name in channels]
        sums = [sum(ended.get((name, end), 0) for name in channels) for end in ENDS]
        return [*lines, _line("all", sum(sent.values()), *sums)]


def _line(name: str, *cells: object) -> str:
    return f"{name:<12}" + "".join(_cell(cell) for cell in cells)


def _cell(cell: object) -> str:
    shown = f"{cell:,}" if isinstance(cell, int) and cell else "." if cell == 0 else str(cell)
    return f"{shown:>11}"


def counted(ids: Iterable[int]) -> str:
    """Ids in few words: `7`, `7, 9`, or `7 to 106`."""
    numbers = sorted(ids)
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))
