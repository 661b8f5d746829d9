"""Build the indexes that a release wants and a database at work does not have yet, without stopping its senders.

CREATE INDEX keeps writers out for as long as it reads a table, so a table that has rows gets its index CONCURRENTLY,
after the migration. That waits for transactions that are open: an index that cannot be had in time is left for the
next `menzil migrate`, and the functions that would use it do without it meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from menzil.install import books
from menzil.install.errors import InstallLockedError, explain
from menzil.install.step import Pace, Progress, execute, run_step

_THERE = "select to_regprocedure('menzil._missing_indexes()') is not null"
_MISSING = "select name, statement, alone from menzil._missing_indexes()"
#: Seconds to wait for a lock that senders would queue behind.
MOMENT = 0.1


def build(conn: psycopg.Connection[Any], *, pace: Pace, progress: Progress) -> list[str]:
    """Build what is missing, and return the names of the indexes that are there now."""
    built: list[str] = []
    given_up: set[str] = set()
    while todo := [row for row in _missing(conn) if row[0] not in given_up]:
        name, statement, alone = todo[0]
        if alone:
            done = _concurrently(conn, name, statement, pace, progress)
        else:
            done = _briefly(conn, name, statement, pace, progress)
        if not done:
            given_up.add(name)
        elif not statement.startswith("drop") and name not in built:
            built.append(name)
    return [name for name in built if name not in given_up]


def _missing(conn: psycopg.Connection[Any]) -> list[tuple[str, str, bool]]:
    with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
        if cursor.execute(books.statement(_THERE), prepare=False).fetchone() == (False,):
            return []
        return cursor.execute(books.statement(_MISSING), prepare=False).fetchall()


def _briefly(conn: psycopg.Connection[Any], name: str, statement: str, pace: Pace, progress: Progress) -> bool:
    """Run a statement that reads no rows and needs a lock for a moment."""
    doing = f"building index {name}"
    gentle = replace(pace, lock_timeout=min(MOMENT, pace.lock_timeout or MOMENT))

    def work() -> None:
        # Behind the lock: another migrator may have done it.
        if any(row[:2] == (name, statement) for row in _missing(conn)):
            execute(conn, statement)

    try:
        run_step(conn, doing, work, pace=gentle, progress=progress)
    except InstallLockedError as error:
        progress(f"notice: {error} It is tried again by the next menzil migrate.")
        return False
    return True


def _concurrently(conn: psycopg.Connection[Any], name: str, statement: str, pace: Pace, progress: Progress) -> bool:
    """Run a statement that must stand alone; it may read for long, but waits for open transactions only so long."""
    doing = f"building index {name}"
    progress(f"{doing}, while others work")
    try:
        with _outside_transactions(conn, max(1, round(pace.patience * 1000))):
            execute(conn, statement)
    except psycopg.errors.DuplicateTable:
        return False  # another migrator builds it
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
        progress(f"notice: {doing} waited too long for open transactions. Run menzil migrate again to finish it.")
        return False
    except psycopg.errors.InsufficientPrivilege as error:
        progress(f"notice: {doing} needs the rights of the owner of the table: {error.diag.message_primary}.")
        return False
    except psycopg.Error as error:
        raise explain(error, doing) from error
    return True


@contextmanager
def _outside_transactions(conn: psycopg.Connection[Any], lock_timeout: int) -> Iterator[None]:
    autocommit = conn.autocommit
    conn.autocommit = True
    execute(conn, f"set lock_timeout = {lock_timeout}")
    try:
        yield
    finally:
        execute(conn, "reset lock_timeout")
        conn.autocommit = autocommit
