"""The handshake: does the schema in this database fit this package?

Two small reads without locks, and no error that would abort the caller's transaction.
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
    """The schema a database has and the one this package was written for; 0 is none."""

    database: str
    installed: int
    known: int

    @property
    def verdict(self) -> Verdict:
        if self.installed == self.known:
            return "ok"
        if self.installed == 0:
            return "missing"
        return "too old" if self.installed < self.known else "too new"

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
    may_call: bool
    may_read: bool
    who: str
    database: str


def check(conn: psycopg.Connection[Any], *, root: Path | None = None) -> Status:
    """Read the installed schema version, inside the caller's transaction if there is one."""
    with conn.cursor(row_factory=class_row(_Probe)) as cursor:
        row = cursor.execute(books.statement(books.text("handshake"))).fetchone()
    assert row is not None
    version = _version(conn, may_call=row.may_call) if row.may_call or row.may_read else 0
    if row.installed and not (row.may_call or row.may_read):
        raise PermissionDeniedError(
            f"Role {row.who} may not use menzil in database {row.database}.",
            hint=f"let an administrator run: grant menzil_application to {row.who} (or another of the menzil roles)",
        )
    return Status(row.database, version, latest_version(root))


def _version(conn: psycopg.Connection[Any], *, may_call: bool) -> int:
    with conn.cursor(row_factory=tuple_row) as cursor:
        if may_call:
            cursor.execute("select menzil.schema_version()")
        else:
            # Of the code, not of the tables: between the last migration and the functions nothing fits yet.
            cursor.execute("select max(schema_version) from menzil.installed_code")
        row = cursor.fetchone()
    return int(row[0] or 0) if row else 0
