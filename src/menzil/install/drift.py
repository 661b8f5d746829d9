"""Find out whether a database still runs what this package put there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg.rows import tuple_row

from menzil.install import books
from menzil.install.state import State, read
from menzil.install.step import execute
from menzil.install.tree import Tree, load

Kind = Literal["migration", "code", "function", "procedure", "view", "table"]
What = Literal["missing", "changed", "unknown", "outdated"]

#: Iceberg's libraries name these columns, and menzil cannot do it for them.
_LAKE = {
    "iceberg_tables": "catalog_name table_namespace table_name metadata_location previous_metadata_location"
    " iceberg_type",
    "iceberg_namespace_properties": "catalog_name namespace property_key property_value",
}


@dataclass(frozen=True)
class Difference:
    """One thing that is not as the package has it."""

    kind: Kind
    name: str
    what: What
    sentence: str


def drift(conn: psycopg.Connection[Any], *, root: Path | None = None) -> list[Difference]:
    """Return the differences between a database and this package; none means they are the same.

    Migrations and code are compared with the package by checksum; functions and views with how they looked when they
    were applied. Needs the right to read the installer's books, and changes nothing.
    """
    tree = load(root)
    # Rolled back, so that the settings we make for ourselves do not stay in the caller's transaction.
    with conn.transaction(force_rollback=True):
        execute(conn, books.text("session"))
        state = read(conn)
        differences = [*_migrations(state, tree), *_code(state, tree)]
        if state.code is not None:
            # Another server release prints the same view or default differently, so looks prove nothing then.
            differences += _objects(conn, with_looks=state.code.server_major == state.probe.server_major)
        if any(name == "lake" for name, _ in state.applied.values()):
            differences += _lake(conn)
    return differences


def _migrations(state: State, tree: Tree) -> list[Difference]:
    found = []
    for migration in tree.migrations:
        name, checksum = state.applied.get(migration.version, ("", ""))
        if not name:
            found.append(Difference("migration", migration.label, "missing", f"{migration.label} was not applied"))
        elif checksum != migration.source.checksum:
            sentence = f"{migration.label} was applied with another text"
            found.append(Difference("migration", migration.label, "changed", sentence))
    for version in sorted(set(state.applied) - {migration.version for migration in tree.migrations}):
        label = f"{version:04}_{state.applied[version][0]}"
        found.append(Difference("migration", label, "unknown", f"{label} was applied by another menzil than this one"))
    return found


def _code(state: State, tree: Tree) -> list[Difference]:
    if state.code is None:
        return [Difference("code", "menzil", "missing", "functions and views were never applied")]
    if state.runs(tree):
        return []
    sentence = f"functions, views and roles were applied by menzil {state.code.package} and need `menzil migrate`"
    return [Difference("code", "menzil", "outdated", sentence)]


def _objects(conn: psycopg.Connection[Any], *, with_looks: bool) -> list[Difference]:
    with conn.cursor(row_factory=tuple_row) as cursor:
        cursor.execute("select kind, name, fingerprint from menzil.installed_object", prepare=False)
        recorded = {(kind, name): fingerprint for kind, name, fingerprint in cursor}
        cursor.execute(books.statement(books.text("objects")), prepare=False)
        present = {(kind, name): fingerprint for kind, name, fingerprint, _made_now in cursor}
    found = []
    for kind, name in sorted(recorded.keys() | present.keys()):
        before, now = recorded.get((kind, name)), present.get((kind, name))
        if now is None:
            found.append(Difference(kind, name, "missing", f"{kind} menzil.{name} is gone"))
        elif before is None:
            found.append(Difference(kind, name, "unknown", f"{kind} menzil.{name} is not menzil's"))
        elif before != now and with_looks:
            found.append(Difference(kind, name, "changed", f"{kind} menzil.{name} was changed by hand"))
    return found


def _lake(conn: psycopg.Connection[Any]) -> list[Difference]:
    """The catalog of the lake: tables and columns that are gone. Columns that an engine has added do no harm."""
    text = """
select c.relname::text, array_agg(a.attname::text)
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
 where c.relnamespace = (select n.oid from pg_namespace n where n.nspname = 'menzil_lake') group by 1"""
    with conn.cursor(row_factory=tuple_row) as cursor:
        present: dict[str, list[str]] = dict(cursor.execute(text, prepare=False).fetchall())
    found = []
    for table, columns in _LAKE.items():
        name = f"menzil_lake.{table}"
        if table not in present:
            found.append(Difference("table", name, "missing", f"table {name} is gone"))
        elif lacking := sorted(set(columns.split()) - set(present[table])):
            found.append(Difference("table", name, "changed", f"table {name} has no column {', '.join(lacking)}"))
    return found
