"""Time for the model: whole hours that pass when a rule says so, and nothing in between.

The engine reads the clock of the database, which nobody can turn. So time passes the other way round: every time that
is stored moves back by so many hours. An example lasts a second or two and all its times are hours apart, so the real
clock decides nothing but the order of events inside the same hour. This is the one place of these tests that touches
the private tables.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import psycopg

HOUR_MS = 3_600_000
HOUR = timedelta(hours=1)
#: How far the model's present is into its hour. A message whose time is over keeps its key for another second.
INTO_THE_HOUR = timedelta(seconds=5)

_COLUMNS = {
    "message": ["created_at", "scheduled_at", "expires_at"],
    "line": ["due_at", "news_at", "wait_until"],
    "aside": ["due_at", "news_at", "wait_until"],
    "run": ["due_at", "last_due"],
    "lane": ["head_due", "tail_due", "next_at"],
    "lease": ["leased_at", "unlock_at", "watch_at"],
    "done": ["leased_at", "ended_at"],
    "returned": ["created_at", "place_at", "due_at", "first_leased_at"],
    "scheduled": ["due_at", "place_at"],
    "expiring": ["expires_at", "created_at"],
    "key": ["created_at"],
    "dead_letter": ["created_at", "failed_at"],
    "attempt": ["leased_at", "ended_at"],
}
_ARRAYS = {"gate": ["released_at"]}
_REGISTERS = ["withdrawn_at"]
# Registers that say when something was last looked at: hours ago, so everything is looked at again.
_LOOKS = ["swept_at", "deep_at", "turn_mark", "counted_at"]
_EMPTIED = [
    *("message", "line", "aside", "look", "run", "lane", "lane_name", "rank_used", "lease", "done", "returned"),
    *("scheduled", "key_queue", "expiring", "withdrawn", "key", "dead_letter", "gate", "size_change", "attempt"),
    *("event", "endpoint_secret", "channel"),
]


def _shift() -> str:
    sets: dict[str, list[str]] = {}
    for table, columns in _COLUMNS.items():
        sets.setdefault(table, []).extend(f"{column} = {column} - v_by" for column in columns)
    for table, columns in _ARRAYS.items():
        sets.setdefault(table, []).extend(
            f"{c} = case when {c} is not null then array(select u.at - v_by from unnest({c}) with ordinality u(at, n)"
            " order by u.n) end"
            for c in columns
        )
    body = "".join(f"update menzil.{table} set {', '.join(parts)};\n" for table, parts in sets.items())
    body += "".join(
        f"perform setval('menzil.{name}', greatest(0, last_value - p_hours * 3600000000)) from menzil.{name};\n"
        for name in _REGISTERS
    )
    body += "".join(f"perform setval('menzil.{name}', 0);\n" for name in _LOOKS)
    return f"""
        create or replace function public.pass_hours(p_hours bigint) returns void language plpgsql as $$
        declare v_by interval := p_hours * interval '1 hour';
        begin
          {body}
        end $$"""


class Clock:
    """Knows where hour zero lies on the database's clock."""

    def __init__(self, conn: psycopg.Connection) -> None:
        self._conn = conn
        self._zero = datetime.min
        conn.execute(_shift())

    def start(self) -> None:
        """Empties the queue and begins with hour zero."""
        self._conn.execute(";".join(f"delete from menzil.{table}" for table in _EMPTIED))
        self._conn.execute("select " + ", ".join(f"setval('menzil.{name}', 0)" for name in (*_REGISTERS, *_LOOKS)))
        self._zero = self._conn.execute("select clock_timestamp()").fetchone()[0] - INTO_THE_HOUR

    def pass_hours(self, hours: int) -> None:
        self._conn.execute("select public.pass_hours(%s)", [hours])
        self._zero -= hours * HOUR

    def rest(self) -> None:
        """A moment passes: the next dequeue looks at everything again, not only at what is recent."""
        self._conn.execute("select " + ", ".join(f"setval('menzil.{name}', 0)" for name in _LOOKS))

    def at(self, hour: int | None) -> datetime | None:
        """The moment on the database's clock at which this hour begins."""
        return None if hour is None else self._zero + hour * HOUR

    def hour_of(self, moment: datetime | None) -> int | None:
        """The hour a stored time lies in."""
        return None if moment is None else (moment - self._zero) // HOUR
