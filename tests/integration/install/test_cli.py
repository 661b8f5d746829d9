"""`menzil migrate` and `menzil sql` as a user types them."""

from __future__ import annotations

import json

import psycopg
import pytest
from click.testing import CliRunner

from menzil.cli import main
from menzil.install import migrate, script
from tests.integration.install.catalog import dump


def menzil(*arguments: str):
    return CliRunner().invoke(main, arguments)


def test_migrate_says_what_it_did_and_then_that_there_is_nothing_to_do(empty):
    first = menzil("migrate", "--dsn", empty)
    assert first.exit_code == 0, first.output
    assert "applying functions, views and roles: done" in first.stdout
    assert first.stdout.splitlines()[-1].startswith("Schema 0 is now ")
    second = menzil("migrate", "--dsn", empty)
    assert second.exit_code == 0
    assert second.stdout.startswith("Nothing to do: ")


def test_migrate_answers_in_json(empty):
    answer = menzil("migrate", "--dsn", empty, "--json")
    report = json.loads(answer.stdout)
    assert report["from_version"] == 0
    assert report["changed"] is True
    assert report["to_version"] == len(report["applied"])
    assert json.loads(menzil("migrate", "--dsn", empty, "--json").stdout)["changed"] is False


def test_migrate_refuses_with_a_sentence_and_a_hint(empty):
    migrate(empty)
    with psycopg.connect(empty) as conn:
        conn.execute("insert into menzil.migration (version, name, checksum) values (9999, 'later', 'x')")
    answer = menzil("migrate", "--dsn", empty)
    assert answer.exit_code == 2
    assert "has schema 9999" in answer.stderr
    assert "Hint: upgrade the menzil package" in answer.stderr


def test_doctor_sends_a_database_of_the_old_release_to_migrate(empty, old_tree):
    migrate(empty, root=old_tree)
    answer = menzil("doctor", "--dsn", empty, "--json")
    assert answer.exit_code == 1
    assert {one["repair"] for one in json.loads(answer.stdout)["findings"] if one["level"] != "ok"} == {
        "menzil migrate"
    }
    with psycopg.connect(empty) as conn:
        conn.execute("drop view menzil.settings cascade")
    answer = menzil("doctor", "--dsn", empty, "--json")
    assert "menzil migrate --reapply" in {one["repair"] for one in json.loads(answer.stdout)["findings"]}


@pytest.mark.parametrize("kind", ["install", "upgrade"])
def test_printed_sql_installs(empty, another, kind):
    migrate(empty)
    with psycopg.connect(another, autocommit=True) as conn:
        conn.execute(menzil("sql", kind).stdout)
    assert dump(empty) == dump(another)


def test_sql_never_connects(monkeypatch):
    monkeypatch.setattr(psycopg, "connect", None)
    for kind in ("install", "upgrade", "uninstall"):
        answer = menzil("sql", kind)
        assert answer.exit_code == 0, answer.output
        assert answer.stdout == script(kind)
    assert menzil("sql", "upgrade", "--from", "9999").exit_code == 2
