"""One step of an installation: a transaction that never makes the workers wait for long.

A statement that needs a table for itself queues, and every later statement queues behind it. So each step waits two
seconds at most, gives way, and tries again a little later, until it gets through or its patience ends. It also gives
way before deadlock_timeout is over: a client and the step may each wait for the other, and PostgreSQL would then end
the client's transaction.

Where both wait for each other, waiting longer helps neither, and the next try may be lucky. So most tries after the
first wait only a moment, and there are many of them; every fourth one waits its full time, for clients whose
transactions take longer than that moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row

from menzil.install import books
from menzil.install.errors import InstallLockedError, explain
from menzil.install.tree import Source

T = TypeVar("T")
Progress = Callable[[str], None]

#: How long most tries after the first wait for a lock, in milliseconds.
BRIEFLY = 100
#: Seconds from one try to the next, at most.
LONGEST = 1.0


@dataclass(frozen=True)
class Pace:
    """How long to wait, in seconds: for one lock, and over all tries of one step. How many rows to copy at once.

    Without `lock_timeout` a step waits four fifths of the server's deadlock_timeout, and two seconds at most.
    """

    lock_timeout: float | None = None
    patience: float = 60.0
    rows: int = 20_000


def run_step(conn: psycopg.Connection[Any], doing: str, work: Callable[[], T], *, pace: Pace, progress: Progress) -> T:
    """Run `work` in a transaction under the migration lock, again and again while others are in the way."""
    started = time.monotonic()
    delay = 0.1
    attempt = 0
    while True:
        try:
            with conn.transaction():
                _prepare(conn, pace, progress, briefly=attempt % 4 != 0)
                return work()
        except psycopg.Error as error:
            if not _passes(error):
                raise explain(error, doing) from error
            waited = time.monotonic() - started
            if waited + delay > pace.patience:
                raise _locked(conn, doing, waited) from error
            progress(f"{doing}: another transaction holds a lock, trying again in {delay:.1f} s")
        time.sleep(delay)
        delay = min(delay * 1.5, LONGEST)
        attempt += 1


def execute(conn: psycopg.Connection[Any], body: str) -> None:
    """Send one SQL text as it is, however many statements it holds."""
    # Without parameters psycopg uses the simple protocol, which takes many statements at once; never prepare it.
    conn.execute(books.statement(body), prepare=False)


def execute_file(conn: psycopg.Connection[Any], source: Source) -> None:
    """Send one SQL file; an error knows where it happened."""
    try:
        execute(conn, source.text)
    except psycopg.Error as error:
        position = int(error.diag.statement_position or 0)
        line = f" line {source.text.count(chr(10), 0, position) + 1}" if position else ""
        error.add_note(f"{source.path}{line}")
        raise


def _prepare(conn: psycopg.Connection[Any], pace: Pace, progress: Progress, *, briefly: bool) -> None:
    # What others committed while we waited for the lock must be visible, so do not rely on the caller's default.
    execute(conn, "set transaction isolation level read committed")
    execute(conn, books.text("session"))
    with conn.cursor(row_factory=tuple_row) as cursor:
        cursor.execute("select pg_catalog.pg_try_advisory_xact_lock(120282525984108)", prepare=False)
        if cursor.fetchone() == (False,):
            progress("another migration is running: waiting for it")
            execute(conn, books.text("lock"))
    execute(conn, books.text("lock_timeout"))
    if pace.lock_timeout is not None:
        execute(conn, f"set local lock_timeout = {max(1, round(pace.lock_timeout * 1000))}")
    elif briefly:
        shorter = f"least({BRIEFLY}, s.setting::bigint)::text"
        execute(
            conn,
            f"select pg_catalog.set_config('lock_timeout', {shorter}, true)"
            " from pg_catalog.pg_settings s where s.name = 'lock_timeout'",
        )
    execute(conn, books.text("become_owner"))


def _passes(error: psycopg.Error) -> bool:
    """Tell whether another session is in the way, which a retry cures."""
    if isinstance(error, psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected):
        return True
    # Roles are shared by all databases of a server: two installations may make or grant the same one at once.
    if isinstance(error, psycopg.errors.UniqueViolation):
        return error.diag.table_name in ("pg_authid", "pg_auth_members")
    # "tuple concurrently updated", in any language: the server names the function in its own.
    where = error.diag.source_function or ""
    return isinstance(error, psycopg.errors.InternalError_) and where.startswith("simple_heap_")


def _locked(conn: psycopg.Connection[Any], doing: str, waited: float) -> InstallLockedError:
    holders: list[str] = []
    with suppress(psycopg.Error), conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(books.statement(books.text("holders")), prepare=False)
        holders = [str(row[0]) for row in cursor]
    return InstallLockedError(
        f"Others held the locks, so we gave up {doing} after {waited:.1f} s; the steps before it stay done.",
        hint=f"end these transactions and run it again: {'; '.join(holders)}" if holders else "run it again",
    )
