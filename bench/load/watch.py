"""A look at a running queue every second or so: sizes of hot tables, memory of workers, connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import psutil

from bench.server import connected

# History grows by what was sent: that is its purpose. Everything else is bounded by what waits.
_SIZES = """
select c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid) from pg_class c
where c.relnamespace = 'menzil'::regnamespace and c.relkind = 'r'
  and c.relname !~ '^(archive|attempt|event|dead_letter|done|returned|key$)'"""
# Not those of autovacuum, which come and go.
_CONNECTIONS = """
select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend'"""


@dataclass
class Look:
    """What one look saw."""

    at: float  # seconds since the watch began
    tables: dict[str, tuple[int, int]]  # bytes of the table and of its indexes
    memory: float  # megabytes
    connections: int
    handled: int

    @property
    def total(self) -> int:
        return sum(table + indexes for table, indexes in self.tables.values())


@dataclass
class Watch:
    """Looks from beside, in a thread of its own, until the end of the block."""

    dsn: str
    pids: list[int]
    handled: Callable[[], int]
    every: float = 1.0
    looks: list[Look] = field(default_factory=list)
    began: float = 0.0

    def __enter__(self) -> Self:
        self.began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        with connected(self.dsn) as conn:
            while not self._over.wait(self.every):
                tables = {name: (size, indexes) for name, size, indexes in conn.execute(_SIZES).fetchall()}
                row = conn.execute(_CONNECTIONS).fetchone()
                memory = sum(family(pid) for pid in self.pids)
                seen = Look(time.monotonic() - self.began, tables, memory, row[0] if row else 0, self.handled())
                self.looks.append(seen)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(timeout=30)


def family(pid: int) -> float:
    """Resident megabytes of a process and its children."""
    found = 0.0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in [process, *process.children(recursive=True)]:
            with suppress(psutil.Error):
                found += each.memory_info().rss / 1e6
    return found


def growth(looks: list[Look], floor: float = 1e6) -> tuple[float, str]:
    """The largest growth of any hot table, or of its indexes, from the first fifth to the last, and whose it was.

    The largest size of each fifth counts; what is smaller than `floor` counts as the floor, because one page more
    in a table of one page is no growth.
    """
    fifth = max(1, len(looks) // 5)
    first, last = looks[:fifth], looks[-fifth:]
    worst, whose = 0.0, ""
    for name in last[-1].tables:
        for part, word in ((0, ""), (1, ", indexes")):
            before, after = (
                max(floor, *(look.tables.get(name, (0, 0))[part] for look in some)) for some in (first, last)
            )
            if after / before > worst:
                worst, whose = after / before, name + word
    return worst, whose
