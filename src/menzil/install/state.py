"""What a database has installed, read without changing or locking anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import class_row, tuple_row

from menzil.install import books
from menzil.install.errors import InstallError, MigrationChangedError
from menzil.install.tree import Migration, Tree
from menzil.model.errors import PermissionDeniedError, SchemaTooNewError


@dataclass(frozen=True)
class Code:
    """The book entry of the functions, views and roles that were applied last."""

    schema_version: int
    checksum: str
    package: str
    server_major: int
    roles: list[str]


@dataclass(frozen=True)
class Probe:
    """What the catalog tells every role: the row of state.sql."""

    who: str
    database: str
    server_major: int
    encoding: str
    roles: list[str]
    may_create: bool
    has_schema: bool
    has_books: bool
    may_read: bool
    owner: str | None
    note: str | None


@dataclass(frozen=True)
class State:
    """The books of one database, and what they are compared with."""

    probe: Probe
    applied: dict[int, tuple[str, str]]  # version: name, checksum
    code: Code | None

    @property
    def version(self) -> int:
        return max(self.applied, default=0)

    @property
    def lost_rows(self) -> bool:
        """Tell whether the books are there and empty, as after a dump without data: the installer never leaves that."""
        return self.probe.has_books and not self.applied

    def outstanding(self, tree: Tree) -> list[Migration]:
        return [migration for migration in tree.migrations if migration.version not in self.applied]

    def runs(self, tree: Tree) -> bool:
        """Tell whether the code in the database is this tree's and everything it depends on is as it was."""
        return (
            self.code is not None
            and self.code.schema_version == tree.version
            and self.code.checksum == tree.code_checksum
            # A new server release prints views differently, so the books are written anew.
            and self.code.server_major == self.probe.server_major
            # A role that was made since then, or that a dump without rights brought none, still needs its grants.
            and self.code.roles == self.probe.roles
        )

    def runs_newer(self) -> bool:
        """Tell whether a later release put its code there: an old process that restarts must not take it back."""
        return self.code is not None and books.release(self.code.package) > books.release(books.package_version())


def read(conn: psycopg.Connection[Any]) -> State:
    """Read the books; call it inside a transaction or on an autocommit connection."""
    with conn.cursor(row_factory=class_row(Probe)) as cursor:
        text = books.text("state").format(roles=books.text("roles"))
        probe = cursor.execute(books.statement(text), prepare=False).fetchone()
    assert probe is not None
    applied: dict[int, tuple[str, str]] = {}
    code = None
    if probe.has_books:
        if not probe.may_read:
            raise PermissionDeniedError(
                f"Role {probe.who} may not read what is installed in database {probe.database}.",
                hint=f"run it as {probe.owner}, who installed menzil there, or as a member of that role",
            )
        with conn.cursor(row_factory=tuple_row) as cursor:
            cursor.execute("select version, name, checksum from menzil.migration", prepare=False)
            applied = {version: (name, checksum) for version, name, checksum in cursor}
        with conn.cursor(row_factory=class_row(Code)) as cursor:
            text = "select schema_version, checksum, package, server_major, roles from menzil.installed_code"
            code = cursor.execute(text, prepare=False).fetchone()
    return State(probe, applied, code)


def version_of_dump(state: State, tree: Tree) -> int:
    """Return the schema version that a dump without data noted, or raise where that is not known."""
    database = state.probe.database
    noted = books.read_note(state.probe.note)
    if noted is None:
        raise InstallError(
            f"Database {database} has the tables of menzil and not the rows that say which version they are.",
            hint="restore the dump with its data; or, if nothing is in the queue, drop schema menzil and migrate again",
        )
    version, history = noted
    if version > tree.version:
        raise SchemaTooNewError(f"Database {database} has schema {version}, and this menzil only knows {tree.version}.")
    if history != tree.history(version):
        raise MigrationChangedError(f"The migrations up to {version} are not those that database {database} has.")
    return version


def demand_characters(probe: Probe) -> None:
    """Raise if the database does not know its characters: JSON with others than ASCII would be refused there."""
    if probe.encoding == "SQL_ASCII":
        raise InstallError(
            f"Database {probe.database} has the encoding SQL_ASCII, in which PostgreSQL does not know characters.",
            sqlstate="22023",
            hint="make another: create database NAME template template0 encoding 'UTF8'",
        )


def demand_continuable(state: State, tree: Tree) -> None:
    """Raise unless this tree continues exactly where the database stands."""
    if state.version > tree.version:
        raise SchemaTooNewError(
            f"Database {state.probe.database} has schema {state.version}, and this menzil only knows {tree.version}.",
            hint="upgrade the menzil package in this process; the database is fine as it is",
        )
    for migration in tree.migrations:
        name, checksum = state.applied.get(migration.version, ("", ""))
        if name and checksum != migration.source.checksum:
            raise MigrationChangedError(
                f"Migration {migration.label} is not the one that database {state.probe.database} has."
            )
        if not name and migration.version < state.version:
            raise InstallError(
                f"Database {state.probe.database} has migration {state.version} but lacks {migration.label}.",
                hint="a row of menzil.migration was deleted by hand: restore it",
            )
