"""The handshake: does the schema in this database fit this package?

It fits if this package was written for a schema that the database still serves: from `compatible_from` to the one that
is installed. Two small reads without locks, and no error that would abort the caller's transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg.rows import class_row, tuple_row

from menzil.install import books
from menzil.install.tree import latest_version
from menzil.model.errors import (
    PermissionDeniedError,
    SchemaError,
    SchemaMissingError,
    SchemaTooNewError,
    SchemaTooOldError,
)

Verdict = Literal["ok", "missing", "too old", "too new"]


@dataclass(frozen=True)
class Status:
    """The schema a database has and the one this package was written for; 0 where menzil is not installed."""

    database: str
    installed: int
    known: int
    compatible_from: int  # the oldest that the database still serves

    @property
    def verdict(self) -> Verdict:
        if self.installed == 0 and self.known > 0:
            return "missing"
        if self.installed < self.known:
            return "too old"
        return "too new" if self.known < self.compatible_from else "ok"

    @property
    def newer(self) -> bool:
        """Whether a later release has migrated the database."""
        return self.installed > self.known

    @property
    def ok(self) -> bool:
        return self.verdict == "ok"

    def error(self) -> SchemaError | None:
        """Return what to raise, with its hint, or None when all is well."""
        both = f"database {self.database} has schema {self.installed}, this menzil was written for {self.known}"
        match self.verdict:
            case "ok":
                return None
            case "missing":
                return SchemaMissingError(f"menzil is not installed in database {self.database}.")
            case "too old":
                return SchemaTooOldError(f"The database is too old: {both}.")
            case "too new":
                return SchemaTooNewError(f"The database is too new: {both}.")

    def demand(self) -> None:
        """Raise unless the database and this package fit together."""
        error = self.error()
        if error is not None:
            raise error


@dataclass(frozen=True)
class _Probe:
    """The row of handshake.sql."""

    installed: bool
    has_window: bool
    may_call: bool
    may_read: bool
    who: str
    database: str


def check(conn: psycopg.Connection[Any], *, root: Path | None = None, known: int | None = None) -> Status:
    """Read which schemas this database serves, inside the caller's transaction if there is one.

    They are compared with `known`, or with the schema of the tree at `root`, or with the package's own.
    """
    with conn.cursor(row_factory=class_row(_Probe)) as cursor:
        row = cursor.execute(books.statement(books.text("handshake"))).fetchone()
    assert row is not None
    if row.installed and not (row.may_call or row.may_read):
        raise PermissionDeniedError(
            f"Role {row.who} may not use menzil in database {row.database}.",
            hint=f"let an administrator run: grant menzil_application to {row.who} (or another of the menzil roles)",
        )
    compatible_from, installed = _window(conn, row) if row.installed else (0, 0)
    return Status(row.database, installed, latest_version(root) if known is None else known, compatible_from)


def _window(conn: psycopg.Connection[Any], row: _Probe) -> tuple[int, int]:
    """From which schema on clients are served, and which one is installed."""
    with conn.cursor(row_factory=tuple_row) as cursor:
        if row.may_call and row.has_window:
            cursor.execute("select compatible_from, installed from menzil.schema_window()")
        elif row.may_call:
            cursor.execute("select v, v from menzil.schema_version() v")
        else:
            # Of the code, not of the tables: between the last migration and the functions nothing fits yet.
            cursor.execute("select max(schema_version), max(schema_version) from menzil.installed_code")
        found = cursor.fetchone()
    compatible_from, installed = found or (0, 0)
    return int(compatible_from or 0), int(installed or 0)
