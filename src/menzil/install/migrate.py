"""Bring a database up to date: outstanding migrations, and with the last one functions, views and roles.

A database at work gets all of it in one transaction: code never meets tables that it was not written for. A migration
that has much to copy brings a function that copies it beforehand, in short transactions, while others work. New indexes
of tables that have rows are built afterwards, while others work.
Safe to run at any time, by several at once, while workers run. Says what it does through `progress`, line by line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from menzil.install import books, indexes
from menzil.install.check import check
from menzil.install.errors import explain
from menzil.install.state import State, demand_characters, demand_continuable, read, version_of_dump
from menzil.install.step import Pace, Progress, execute, execute_file, run_step
from menzil.install.tables import Tables
from menzil.install.tree import Migration, Tree, load
from menzil.model.errors import PermissionDeniedError, UsageError
from menzil.ops.dsn import cannot_reach, understood

CODE = "applying functions, views and roles"
T = TypeVar("T")


@dataclass
class Report:
    """What a migration did."""

    from_version: int = 0
    to_version: int = 0
    applied: list[str] = field(default_factory=list)
    code_applied: bool = False
    indexes: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        return bool(self.applied or self.code_applied or self.indexes)


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
            newer = None if reapply or target is not None else self._newer()
            if newer is not None:
                # An old process that restarts while others are replaced: the newer database serves it as it is.
                self.progress(f"left everything alone: {newer}")
                return self.report
            state = self._look()
            if state.lost_rows:
                version = version_of_dump(state, self.tree)
                self._step(f"adopting schema {version}, which came without its rows", partial(self._adopt, version))
                state = self._look()
            self.report.from_version = state.version
            wanted = self._wanted(state, target)
            for step in _steps(wanted, at_work=state.code is not None):
                self._prepare(step[0])
                with_code = step[-1] is wanted[-1] and target in (None, self.tree.version)
                work = partial(self._apply, step, Tables() if state.code else None, with_code=with_code)
                self.report.applied += self._step(f"applying {' and '.join(one.label for one in step)}", work)
            if target is None and self._lacks_catalog():
                self.report.code_applied = self._step(
                    "making the catalog of the lake, which a dump left out", self._catalog
                )
            if self.report.code_applied:
                self.progress(f"{CODE}: done in the same transaction")
            elif target in (None, self.tree.version) and (reapply or not self._look().runs(self.tree)):
                self.report.code_applied = self._step(CODE, partial(self._apply_code, reapply=reapply))
            if self._look().runs(self.tree):
                self.report.indexes = indexes.build(self.conn, pace=self.pace, progress=self.progress)
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
        if not state.version:
            demand_characters(here)
        if not here.has_schema and not here.may_create:
            raise PermissionDeniedError(
                f"Role {here.who} may not create schema menzil in database {here.database}.",
                hint=f"let the owner of the database run: grant create on database {here.database} to {here.who}",
            )
        return [one for one in state.outstanding(self.tree) if target is None or one.version <= target]

    def _adopt(self, version: int) -> bool:
        """Write the books of a schema that a dump brought without data, and the rows that its migrations put there."""
        if not self._read().lost_rows:  # another migrator was faster
            return False
        for migration in self.tree.migrations:
            if migration.version <= version:
                execute(self.conn, books.record_migration(self.tree, migration))
        execute(self.conn, books.text("fill"))
        return True

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

    def _apply(self, step: list[Migration], tables: Tables | None, *, with_code: bool) -> list[str]:
        self.report.code_applied = False
        execute(self.conn, books.text("books"))
        # Only now, behind the lock, is it certain what others did in the meantime.
        applied = self._read().applied
        missing = [migration for migration in step if migration.version not in applied]
        if missing and tables is not None:
            tables.lock(self.conn)
        for migration in missing:
            execute_file(self.conn, migration.source)
            execute(self.conn, books.record_migration(self.tree, migration))
        if missing and with_code:
            self.report.code_applied = self._apply_code(reapply=False)
        return [migration.label for migration in missing]

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

    def _lacks_catalog(self) -> bool:
        """Whether the catalog of the lake is gone: it has a schema of its own, which `pg_dump -n menzil` leaves out."""
        text = """select exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
                                  where n.nspname = 'menzil_lake' and c.relname = 'iceberg_tables')"""
        if not self._catalog_files() or not self._look().runs(self.tree):
            return False
        with self.conn.transaction(), self.conn.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(text, prepare=False).fetchone() == (False,)

    def _catalog_files(self) -> list[Migration]:
        return [one for one in self.tree.migrations if one.label.endswith("_lake")]

    def _catalog(self) -> bool:
        """Make its tables again, as its migration does, and give roles their rights once more."""
        for migration in self._catalog_files():
            execute_file(self.conn, migration.source)
        return self._apply_code(reapply=True)

    def _step(self, doing: str, work: Callable[[], T]) -> T:
        started = time.monotonic()
        done = run_step(self.conn, doing, work, pace=self.pace, progress=self.progress)
        if done:
            self.progress(f"{doing}: done in {time.monotonic() - started:.2f} s")
        return done

    def _newer(self) -> str | None:
        """A sentence where a later release has migrated this database and the database still serves this one."""
        try:
            with self.conn.transaction():
                status = check(self.conn, known=self.tree.version)
        except (psycopg.Error, PermissionDeniedError):
            return None  # what follows says it better
        if not (status.ok and status.newer):
            return None
        self.report.from_version = self.report.to_version = status.installed
        return (
            f"database {status.database} has schema {status.installed}, this menzil was written for {status.known}, "
            "and the database serves both"
        )

    def _look(self) -> State:
        try:
            with self.conn.transaction():
                execute(self.conn, books.text("session"))
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


def _steps(wanted: list[Migration], *, at_work: bool) -> list[list[Migration]]:
    """Which migrations are one transaction: in a database at work all of them, unless one needs a preparation.

    The preparation is a function that an earlier migration brings; it has to be committed first. While nothing is
    installed yet, each migration stands alone, and a failure leaves the ones before it.
    """
    steps: list[list[Migration]] = []
    for migration in wanted:
        prepared = any(f"menzil._before_{migration.version:04}(" in one.source.text for one in wanted)
        if steps and at_work and not prepared:
            steps[-1].append(migration)
        else:
            steps.append([migration])
    return steps


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
        conn = psycopg.connect(
            understood(database), autocommit=True, client_encoding="utf8", fallback_application_name="menzil migrate"
        )
    except psycopg.Error as error:
        raise cannot_reach(error, database) from error
    with conn:
        yield conn
