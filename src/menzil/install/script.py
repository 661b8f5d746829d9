"""The same installation as one SQL script, for those who run SQL themselves: printed without connecting anywhere.

A script is one transaction of plain SQL without client commands: any client can run it, and a failure leaves nothing.
Only new indexes of tables that have rows are left to `menzil migrate`, or to a person who runs the same statements.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from menzil.install import books
from menzil.install.tree import Migration, Source, Tree, load
from menzil.model.errors import UsageError

Kind = Literal["install", "upgrade", "uninstall"]


def script(kind: Kind, *, start: int | None = None, root: Path | None = None, transaction: bool = True) -> str:
    """Return the SQL that installs, upgrades or uninstalls; an upgrade may leave out what `start` already has.

    Without `transaction` it has no begin and commit, for a client that is in one.
    """
    tree = load(root)
    if start is not None and kind != "upgrade":
        raise UsageError("Only an upgrade starts from a version.", hint="menzil sql upgrade --from VERSION")
    if start is not None and not 0 < start <= tree.version:
        sentence = f"There is no schema {start} to start from: this menzil knows 1 to {tree.version}."
        raise UsageError(sentence, hint="leave --from out: the script skips what the database has")
    match kind:
        case "install":
            body = _install(tree)
        case "upgrade":
            body = _upgrade(tree, start or 0)
        case "uninstall":
            body = [books.text("uninstall")]
    title = (
        f"-- menzil {books.package_version()}, schema {tree.version}: {kind}. One transaction: all of it or nothing.\n"
    )
    return "\n".join(
        [
            title,
            *(["begin isolation level read committed;"] if transaction else []),
            books.text("session"),
            books.text("lock"),
            books.text("lock_timeout"),
            *body,
            *(["commit;"] if transaction else []),
            "",
        ]
    )


def _install(tree: Tree) -> list[str]:
    body = [books.text("guard_install"), books.text("become_owner"), books.text("books")]
    for migration in tree.migrations:
        body += [_file(migration.source), books.record_migration(tree, migration), ""]
    return body + _code(tree)


def _upgrade(tree: Tree, start: int) -> list[str]:
    known = ",\n         ".join(f"({one.version}, '{one.source.checksum}')" for one in tree.migrations)
    guard = books.text("guard_upgrade").format(start=start, version=tree.version, known=known or "(0, '')")
    tables = books.text("lock_tables").format(version=tree.version, tables=books.text("tables"))
    body = [books.text("become_owner"), books.text("books"), guard, tables]
    body += [_outstanding(tree, migration) for migration in tree.migrations if migration.version > start]
    return [*body, *_code(tree), books.text("left_to_build")]


def _outstanding(tree: Tree, migration: Migration) -> str:
    """Wrap a migration so that it runs only where it is missing, with every client."""
    text = f"{_file(migration.source)}{books.record_migration(tree, migration)}"
    outer, inner = f"$migrate_{migration.version}$", f"$migration_{migration.version}$"
    assert outer not in text, f"{migration.label} uses the quote {outer}"
    assert inner not in text, f"{migration.label} uses the quote {inner}"
    return f"""\
do {outer}
begin
  if not exists (select from menzil.migration where version = {migration.version}) then
    execute {inner}
{text}
{inner};
  end if;
end
{outer};
"""


def _code(tree: Tree) -> list[str]:
    body = [*(_file(source) for source in tree.code), books.record_objects()]
    if tree.roles is not None:
        body += [books.text("become_installer"), _file(tree.roles), books.text("become_owner")]
    return [*body, books.record_code(tree)]


def _file(source: Source) -> str:
    return f"-- {source.path}\n{source.text.rstrip()}\n"
