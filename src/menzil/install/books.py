"""The installer's own SQL, and the statements that write its books.

Both ways to install, over a connection and as a printed script, use these same texts: that is why they leave the same
books behind and either can continue what the other began.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from pathlib import Path

from psycopg import sql

from menzil.install.tree import Migration, Tree

_OWN_SQL = Path(__file__).resolve().parent / "sql"


@cache
def text(name: str) -> str:
    """Return one of the installer's own SQL files."""
    return (_OWN_SQL / f"{name}.sql").read_text(encoding="utf-8")


def statement(body: str) -> sql.SQL:
    """Wrap SQL that came from our own files: it is trusted like code."""
    return sql.SQL(body)


def record_migration(tree: Tree, migration: Migration) -> str:
    """Return the statements that book a migration; names and checksums are [a-z0-9_] and need no quoting."""
    values = f"{migration.version}, '{migration.name}', '{migration.source.checksum}'"
    insert = f"insert into menzil.migration (version, name, checksum) values ({values});"
    return f"{insert}\n{_note(tree, migration.version)}"


def _note(tree: Tree, version: int) -> str:
    """Return the statement that notes the version where a dump without data takes it along."""
    note = f"Migrations this database has; written by the installer only. Schema {version}, {tree.history(version)}."
    return f"comment on table menzil.migration is '{note}';"


def read_note(note: str | None) -> tuple[int, str] | None:
    """Return version and history from the comment, or None where an earlier release wrote it."""
    match = re.search(r"Schema (\d+), ([0-9a-f]{64})\.", note or "")
    return (int(match[1]), match[2]) if match else None


def record_objects() -> str:
    """Return the statements that remove functions the code no longer has, and remember how the others look."""
    return text("record_objects").format(objects=text("objects"))


def record_code(tree: Tree) -> str:
    """Return the statement that books the code as applied."""
    book = text("record_code").format(
        version=tree.version, checksum=tree.code_checksum, package=package_version(), roles=text("roles")
    )
    return f"{book}\n{_note(tree, tree.version)}"


@cache
def package_version() -> str:
    """Return the release this code is from; "0" in a tree that was never installed as a package."""
    try:
        return metadata.version("menzil")
    except metadata.PackageNotFoundError:
        return "0"


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a release, for comparing: 0.10.1.dev3 is (0, 10, 1)."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
