"""The printed scripts, as text, and what they refuse to print."""

from __future__ import annotations

import pytest

from menzil.install import Status, script
from menzil.install.books import record_migration, release
from menzil.install.tree import load
from menzil.model.errors import SchemaMissingError, SchemaTooNewError, SchemaTooOldError, UsageError


@pytest.mark.parametrize("kind", ["install", "upgrade", "uninstall"])
def test_script_is_one_transaction_of_plain_sql(kind):
    lines = script(kind).splitlines()
    assert lines[0].startswith("-- menzil ")
    assert lines.count("begin isolation level read committed;") == 1
    assert lines[-1] == "commit;"
    assert not [line for line in lines if line.startswith("\\")]


def test_script_books_every_migration_it_applies():
    tree = load()
    for kind in ("install", "upgrade"):
        assert all(record_migration(tree, migration) in script(kind) for migration in tree.migrations)


def test_upgrade_leaves_out_what_the_start_has():
    tree = load()
    text = script("upgrade", start=tree.version)
    assert not any(record_migration(tree, migration) in text for migration in tree.migrations)


def test_only_an_upgrade_has_a_start_and_it_must_exist():
    with pytest.raises(UsageError, match="Only an upgrade"):
        script("install", start=1)
    for start in (0, -1, load().version + 1):
        with pytest.raises(UsageError, match="no schema"):
            script("upgrade", start=start)


def test_releases_compare_by_number():
    assert release("0.10.1") > release("0.9")
    assert release("1.0.dev3") == release("1.0")
    assert release("unknown") < release("0")


@pytest.mark.parametrize(
    ("installed", "verdict", "error"),
    [(0, "missing", SchemaMissingError), (2, "too old", SchemaTooOldError), (5, "too new", SchemaTooNewError)],
)
def test_handshake_has_an_error_with_a_hint_for_each_verdict(installed, verdict, error):
    status = Status("shop", installed, 3, compatible_from=min(4, installed))
    assert status.verdict == verdict
    with pytest.raises(error, match="shop") as caught:
        status.demand()
    assert caught.value.hint
    assert Status("shop", 3, 3, 3).error() is None
    assert Status("shop", 9, 3, 3).error() is None, "a newer database that serves this package"
