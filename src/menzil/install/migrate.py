"""Bring a database up to date: outstanding migrations one by one, and with the last one functions, views and roles.

A migration that has much to copy brings a function that copies it beforehand, in short transactions, while others work.
Safe to run at any time, by several at once, while workers run. Says what it does through `progress`, line by line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from menzil.install import books
from menzil.install.errors import explain
from menzil.install.state import State, demand_continuable, read
from menzil.install.step import Pace, Progress, execute, execute_file, run_step
from menzil.install.tree import Migration, Tree, load
from menzil.model.errors import PermissionDeniedError, UsageError
from menzil.ops.dsn import cannot_reach, understood

CODE = "applying functions, views and roles"


@dataclass
class Report:
    """What a migration did."""

    from_version: int = 0
    to_version: int = 0
    applied: list[str] = field(default_factory=list)
    code_applied: bool = False
    notices: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        return bool(self.applied) or self.code_applied


def migrate(
    database: str | psycopg.Connection[Any],
    *,
    target: int | None = None,
    progress: Progress | None = None,
    reapply: bool = False,
    pace: Pace | None = None,
    root: Path | None = None,
) -> Report:
    """Install menzil into this database, or bring it up to date; a second run finds nothing to do.

    `target` stops after that migration and leaves the code alone. `reapply` applies the code even when it is current.
    `root` is another SQL tree than the package's own.
    """
    tree = load(root)
    with _connected(database) as conn:
        return _Migrator(conn, tree, progress or (lambda _line: None), pace or Pace()).run(target, reapply=reapply)


class _Migrator:
    def __init__(self, conn: psycopg.Connection[Any], tree: Tree, progress: Progress, pace: Pace) -> None:
        self.conn = conn
        self.tree = tree
        self.progress = progress
        self.pace = pace
        self.report = Report()

    def run(self, target: int | None, *, reapply: bool) -> Report:
        started = time.monotonic()
        self.conn.add_notice_handler(self._notice)
        try:
            state = self._look()
            self.report.from_version = state.version
            wanted = self._wanted(state, target)
            for migration in wanted:
                self._prepare(migration)
                # One transaction, so that no code ever meets tables that it was not written for.
                with_code = migration is wanted[-1] and target in (None, self.tree.version)
                work = partial(self._apply, migration, with_code=with_code)
                if self._step(f"applying {migration.label}", work):
                    self.report.applied.append(migration.label)
            if self.report.code_applied:
                self.progress(f"{CODE}: done in the same transaction")
            elif target in (None, self.tree.version) and (reapply or not self._look().runs(self.tree)):
                self.report.code_applied = self._step(CODE, partial(self._apply_code, reapply=reapply))
            self.report.to_version = self._look().version
        finally:
            self.conn.remove_notice_handler(self._notice)
        self.report.seconds = time.monotonic() - started
        return self.report

    def _wanted(self, state: State, target: int | None) -> list[Migration]:
        if target is not None and not state.version <= target <= self.tree.version:
            raise UsageError(
                f"Schema {target} cannot be reached: the database has {state.version}, this menzil knows up to "
                f"{self.tree.version}, and migrations only go forward.",
                hint=f"choose a target from {max(state.version, 1)} to {self.tree.version}, or leave it out",
            )
        here = state.probe
        if not here.has_schema and not here.may_create:
            raise PermissionDeniedError(
                f"Role {here.who} may not create schema menzil in database {here.database}.",
                hint=f"let the owner of the database run: grant create on database {here.database} to {here.who}",
            )
        return [one for one in state.outstanding(self.tree) if target is None or one.version <= target]

    def _prepare(self, migration: Migration) -> None:
        """Call menzil._before_NNNN, if an earlier migration brought it, until a round has less to do than it may."""
        doing = f"preparing {migration.label}"
        started = time.monotonic()
        total, done = 0, self.pace.rows
        while done >= self.pace.rows and self._may_prepare(migration):
            work = partial(self._round, migration)
            done = run_step(self.conn, doing, work, pace=self.pace, progress=self.progress)
            total += done
            if done:
                self.progress(f"{doing}: {total} rows in {time.monotonic() - started:.2f} s")

    def _may_prepare(self, migration: Migration) -> bool:
        name = f"menzil._before_{migration.version:04}(integer)"
        with self.conn.transaction(), self.conn.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(books.statement(f"select to_regprocedure('{name}') is not null"), prepare=False)
            return cursor.fetchone() == (True,)

    def _round(self, migration: Migration) -> int:
        # Behind the lock: another migrator may have applied the migration, and then the function is gone.
        if not self._may_prepare(migration):
            return 0
        with self.conn.cursor(row_factory=tuple_row) as cursor:
            call = f"select menzil._before_{migration.version:04}({self.pace.rows})"
            row = cursor.execute(books.statement(call), prepare=False).fetchone()
        return int(row[0]) if row else 0

    def _apply(self, migration: Migration, *, with_code: bool) -> bool:
        self.report.code_applied = False
        execute(self.conn, books.text("books"))
        # Only now, behind the lock, is it certain what others did in the meantime.
        if migration.version in self._read().applied:
            return False
        execute_file(self.conn, migration.source)
        execute(self.conn, books.record_migration(migration))
        if with_code:
            self.report.code_applied = self._apply_code(reapply=False)
        return True

    def _apply_code(self, *, reapply: bool) -> bool:
        execute(self.conn, books.text("books"))
        state = self._read()
        if not reapply and state.runs(self.tree):
            return False
        if not reapply and state.code is not None and state.runs_newer():
            self.progress(f"left the code alone: it is from menzil {state.code.package}, which is newer than this one")
            return False
        for source in self.tree.code:
            execute_file(self.conn, source)
        execute(self.conn, books.record_objects())
        if self.tree.roles is not None:
            execute(self.conn, books.text("become_installer"))
            execute_file(self.conn, self.tree.roles)
            execute(self.conn, books.text("become_owner"))
        execute(self.conn, books.record_code(self.tree))
        return True

    def _step(self, doing: str, work: Callable[[], bool]) -> bool:
        started = time.monotonic()
        done = run_step(self.conn, doing, work, pace=self.pace, progress=self.progress)
        if done:
            self.progress(f"{doing}: done in {time.monotonic() - started:.2f} s")
        return done

    def _look(self) -> State:
        try:
            with self.conn.transaction():
                return self._read()
        except psycopg.Error as error:
            raise explain(error, "reading what is installed") from error

    def _read(self) -> State:
        state = read(self.conn)
        demand_continuable(state, self.tree)
        return state

    def _notice(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        # "… does not exist, skipping" is the server talking to itself; what our SQL raises is meant for people.
        if diagnostic.severity_nonlocalized == "NOTICE" and diagnostic.source_function != "exec_stmt_raise":
            return
        line = diagnostic.message_primary or ""
        if diagnostic.message_hint:
            line = f"{line} ({diagnostic.message_hint})"
        if line in self.report.notices:  # said by a try that had to give way
            return
        self.report.notices.append(line)
        self.progress(f"notice: {line}")


@contextmanager
def _connected(database: str | psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    if isinstance(database, psycopg.Connection):
        if database.info.transaction_status != TransactionStatus.IDLE:
            raise UsageError(
                "The connection is inside a transaction, and a migration needs its own.",
                hint="commit or roll back first, or give migrate() a DSN",
            )
        yield database
        return
    try:
        conn = psycopg.connect(understood(database), autocommit=True, fallback_application_name="menzil migrate")
    except psycopg.Error as error:
        raise cannot_reach(error, database) from error
    with conn:
        yield conn
