"""The book: what the demo sent and how each message should end, kept apart from the database it is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import psycopg

ENDS = ("completed", "failed", "expired", "cancelled")
ORIGINS = ("sent", "redriven", "replayed")

_ARCHIVE = """
select id, channel, status,
       case when redrive_of is not null then 'redriven' when replay_of is not null then 'replayed' else 'sent' end
  from menzil.archive"""


@dataclass(frozen=True)
class Entry:
    """One message: where it went, how it should end, and where it came from."""

    channel: str
    end: str
    origin: str = "sent"


@dataclass
class Book:
    """Every message by its id."""

    entries: dict[int, Entry] = field(default_factory=dict)

    def sent(self, channel: str, *ids: int, end: str = "completed", origin: str = "sent") -> int:
        """Write down messages and how they should end; return the last id. An id that is there already is a repeat."""
        assert end in ENDS
        assert origin in ORIGINS
        for message_id in ids:
            self.entries.setdefault(message_id, Entry(channel, end, origin))
        return ids[-1]

    def dead(self) -> int:
        """How many dead letters wait for a decision: a redriven one does not, its new message is in here, too."""
        entries = self.entries.values()
        return sum(entry.end == "failed" for entry in entries) - sum(entry.origin == "redriven" for entry in entries)

    def differences(self, conn: psycopg.Connection[Any]) -> list[str]:
        """What does not add up between this book and the database, in sentences; empty when all does."""
        archive = conn.execute(_ARCHIVE).fetchall()
        rows = Counter(row[0] for row in archive)
        found = {message_id: Entry(*rest) for message_id, *rest in archive}
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
                should, is_ = (", ".join((one.channel, one.origin, one.end)) for one in (entry, found[key]))
                wrong.append(f"message {key} should be {should}, and is {is_}")
            elif tries[key] != (entry.end == "completed"):
                wrong.append(f"message {key} of {entry.channel} succeeded {tries[key]} times")
        return wrong

    def table(self, conn: psycopg.Connection[Any]) -> list[str]:
        """What was sent, by this book, beside how it ended, by the archive; one line per channel, and the sum."""
        query = "select channel, status, count(*) from menzil.archive group by channel, status"
        ended = {(channel, status): count for channel, status, count in conn.execute(query).fetchall()}
        began = Counter((entry.channel, entry.origin) for entry in self.entries.values())
        both = Counter(ended) + began
        channels = sorted({channel for channel, _ in both})
        lines = [_line("channel", *ORIGINS, *ENDS)]
        lines += [_line(name, *(both[name, cell] for cell in (*ORIGINS, *ENDS))) for name in channels]
        return [*lines, _line("all", *(sum(both[name, cell] for name in channels) for cell in (*ORIGINS, *ENDS)))]


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
