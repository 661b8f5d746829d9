"""The server of a test run, and its databases: templates that the run shares, and one database for each test.

All databases of a run have its name in theirs, and every process of the run keeps one connection open that has it too.
So a later run can tell which databases no run uses any more, and drops them. Names only: nothing is asked of the server
but the right to create databases.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import sql

from menzil.embedded import Embedded, EmbeddedError, places
from menzil.install import migrate
from menzil.install.tree import load
from menzil.model.errors import UsageError
from menzil.model.version import SCHEMA_VERSION_KNOWN
from menzil.ops import upkeep
from menzil.ops.dsn import cannot_reach, understood
from menzil.ops.run import run
from menzil.testing.addressing import url_of

PREFIX = "menzil_test"
#: Templates of the embedded server stay: the next run begins without a migration.
KEPT = "menzil_base"
_NAME = re.compile(rf"{PREFIX}_([0-9a-z]+)_\w+")
#: How many kept templates of other releases there may be.
MOST_KEPT = 4

Prepare = Callable[[str], Any]


class Server:
    """A PostgreSQL that tests may create databases in; `dsn` leads to one that is there already."""

    def __init__(self, dsn: str | None, run_name: str) -> None:
        self._embedded: Embedded | None = None
        if dsn is None:
            # Beside the data of the embedded server, never in it: this one may lose everything with the power.
            try:
                self._embedded = Embedded(places.data_dir() / "test", durable=False).start()
            except EmbeddedError as error:
                hint = f"{error.hint}; " if error.hint else ""
                other = "set MENZIL_TEST_DSN to a server in which tests may create databases"
                raise EmbeddedError(error.message, hint=f"{hint}or {other}") from error
            dsn = self._embedded.dsn
        self.dsn = understood(dsn)
        self._run = re.sub(r"[^0-9a-z]", "", run_name.lower())[-12:]
        self._numbers = itertools.count(1)
        try:
            self._conn = psycopg.connect(self.dsn, autocommit=True, application_name=f"{PREFIX} {self._run}")
        except psycopg.Error as error:
            raise cannot_reach(error, self.dsn) from error
        self._key = int(hashlib.sha256(f"{PREFIX} {self._run}".encode()).hexdigest()[:15], 16)
        self._conn.execute("set idle_session_timeout = 0")  # a test may take long, and this connection says we live
        self._conn.execute("select pg_advisory_lock_shared(%s)", [self._key])
        self._me = f"{self._run}_{self._conn.info.backend_pid}"
        self._sweep()

    # Databases of tests

    @contextmanager
    def database(self, prepare: Prepare | None) -> Iterator[str]:
        """A database with menzil in it and what `prepare` put there, for as long as it is used."""
        name = f"{PREFIX}_{self._me}_{next(self._numbers)}"
        self._create(name, self._template(prepare))
        dsn = url_of(self.dsn, name)
        try:
            with psycopg.connect(dsn, autocommit=True) as conn:
                run(conn, upkeep.adopt())  # a clone knows that it is a copy, and would stand still
            yield dsn
        finally:
            self._drop(name)

    # Templates

    def _template(self, prepare: Prepare | None) -> str:
        base = self._base()
        if prepare is None:
            return base
        # What prepares is a fixture of the project: one for the whole run.
        return self._made(f"{PREFIX}_{self._run}_made", base, prepare)

    def _base(self) -> str:
        kept = self._embedded is not None
        name = f"{KEPT}_{_fingerprint()}" if kept else f"{PREFIX}_{self._run}_base"
        return self._made(name, None, _install)

    def _made(self, name: str, template: str | None, make: Prepare) -> str:
        """The template of this name; made by the first process that asks, and whole or not at all."""
        if self._is_there(name):
            return name
        self._conn.execute("select pg_advisory_lock(%s)", [self._key + 1])
        try:
            if not self._is_there(name):
                # Several runs may make the same one: the last to finish finds it there.
                draft = f"{PREFIX}_{self._me}_draft"
                self._drop(draft)
                self._create(draft, template)
                try:
                    make(url_of(self.dsn, draft))
                    self._end_sessions(draft)
                    with suppress(psycopg.errors.DuplicateDatabase):
                        self._do("alter database {} rename to {}", draft, name)
                finally:
                    self._drop(draft)
        finally:
            self._conn.execute("select pg_advisory_unlock(%s)", [self._key + 1])
        return name

    def _create(self, name: str, template: str | None) -> None:
        try:
            if template is None:
                self._do("create database {}", name)
            else:
                self._do("create database {} template {}", name, template)
        except psycopg.errors.InsufficientPrivilege as error:
            hint = "alter role … createdb, or leave MENZIL_TEST_DSN out for an embedded server"
            raise UsageError("This user may not create databases, which each test needs one of.", hint=hint) from error

    def _is_there(self, name: str) -> bool:
        return self._conn.execute("select from pg_database where datname = %s", [name]).rowcount == 1

    # The end

    def close(self) -> None:
        """Drop what the run shared if this is its last process, and let go of the server."""
        with self._conn as conn:
            conn.execute("select pg_advisory_unlock_shared(%s)", [self._key])
            # A run that still works holds the lock, and will be the last.
            (is_last,) = conn.execute("select pg_try_advisory_lock(%s)", [self._key]).fetchone() or (False,)
            if is_last:
                for name in self._names(rf"{PREFIX}\_{self._run}\_%"):
                    self._drop(name)
        if self._embedded is not None:
            self._embedded.close()

    def _sweep(self) -> None:
        """Drop databases of runs that ended before they could."""
        for name in self._names(rf"{PREFIX}\_%"):
            if (found := _NAME.fullmatch(name)) and found[1] != self._run and not self._lives(found[1]):
                self._drop(name, quietly=True)
        if self._embedded is not None:
            for name in self._names(rf"{KEPT}\_%")[:-MOST_KEPT]:
                self._drop(name, quietly=True)

    def _lives(self, run_name: str) -> bool:
        asked = "select from pg_stat_activity where application_name = %s"
        return self._conn.execute(asked, [f"{PREFIX} {run_name}"]).rowcount > 0

    def _names(self, like: str) -> list[str]:
        """Databases of this user, the oldest first."""
        asked = "select datname from pg_database where datname like %s and datdba = current_user::regrole order by oid"
        return [name for (name,) in self._conn.execute(asked, [like])]

    def _drop(self, name: str, *, quietly: bool = False) -> None:
        try:
            try:
                self._do("drop database if exists {} with (force)", name)
            except psycopg.errors.InsufficientPrivilege:
                # FORCE may end no process of autovacuum for a user who is no superuser. A plain DROP asks it to leave.
                self._do("drop database if exists {}", name)
        except psycopg.Error as error:
            if not quietly:
                warnings.warn(f"The database {name} of a test could not be dropped: {error}", stacklevel=2)

    def _end_sessions(self, name: str) -> None:
        """A database is cloned and renamed only while no session uses it: a pool of `prepare` may."""
        self._conn.execute("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s", [name])

    def _do(self, text: str, *names: str) -> None:
        self._conn.execute(sql.SQL(text).format(*map(sql.Identifier, names)))


def _install(dsn: str) -> None:
    migrate(dsn)


def _fingerprint() -> str:
    """Changes with every change of the schema, also while menzil itself is worked on."""
    tree = load()
    sums = [one.source.checksum for one in tree.migrations] + [one.checksum for one in tree.code]
    sums += [tree.roles.checksum] if tree.roles else []
    whole = hashlib.sha256(" ".join([str(SCHEMA_VERSION_KNOWN), *sums]).encode()).hexdigest()
    return whole[:12]
