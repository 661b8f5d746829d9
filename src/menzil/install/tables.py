"""Lock the tables of a queue at work before a step changes them, in the order in which its clients lock them.

A client that holds a lock on one table and waits for another one which this transaction holds is never done while
this transaction waits for the first. Trying again helps only by luck. So tables are locked one by one, and a table that
was in the way is locked first by the next try: while the step waits for it, the step holds nothing that the client
needs. Clients lock tables in few orders, so a handful of tries finds one that fits all of them.

Every other try, and the first, locks nothing beforehand: a dump, or a vacuum of a table that the step does not change,
is then in no way.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from menzil.install import books


class Tables:
    """The order that the tries of one step have found."""

    def __init__(self) -> None:
        self._tries = 0
        self._first: list[str] = []

    def lock(self, conn: psycopg.Connection[Any]) -> None:
        """Lock all of them until the transaction ends. One that cannot be had is the first of the next such try."""
        self._tries += 1
        if self._tries % 2:
            return
        with conn.cursor(row_factory=tuple_row) as cursor:
            here = [str(row[0]) for row in cursor.execute(books.statement(books.text("tables")), prepare=False)]
            for table in sorted(here, key=self._turn):
                lock = sql.SQL("lock table only {} in access exclusive mode").format(sql.Identifier("menzil", table))
                try:
                    cursor.execute(lock, prepare=False)
                except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                    self._first = [table, *(other for other in self._first if other != table)]
                    raise

    def _turn(self, table: str) -> int:
        return self._first.index(table) if table in self._first else len(self._first)
