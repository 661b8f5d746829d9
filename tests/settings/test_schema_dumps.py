"""A dump without data, as staging and tests are made from: `menzil migrate` adopts the tables it finds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import menzil
from menzil.embedded import Embedded, binaries
from menzil.install import drift
from tests.conftest import database
from tests.integration.cli.user import User
from tests.integration.install.catalog import dump as catalog
from tests.settings.day import prepare, work

BIN = binaries.find().bin

pytestmark = pytest.mark.skipif(not (BIN / "pg_dump").exists(), reason=f"{BIN} has no pg_dump")


@pytest.fixture(scope="module")
def source(server: Embedded, _installed: str) -> Iterator[str]:
    """A queue that was used, with settings of its own."""
    with database(server, "dumped", _installed) as dsn, menzil.Menzil(dsn) as mq:
        mq.channel_set("billing")
        mq.complete_many(mq.dequeue(len(mq.send_batch("billing", [1, 2, 3]))))
        mq.send("billing", 4)
        yield dsn


def restore(source: str, target: str, place: Path, *options: str) -> None:
    file = place / "dump.sql"
    subprocess.run([BIN / "pg_dump", *options, "-f", file, "-d", source], check=True)
    text = "\n".join(line for line in file.read_text().splitlines() if not line.startswith("\\"))
    with psycopg.connect(target, autocommit=True) as conn:
        conn.execute(text)


def described(dsn: str) -> list[str]:
    """Everything but columns: an index keeps the name of a column that was renamed, and a restored one does not."""
    return [line for line in catalog(dsn) if not line.startswith("column ")]


@pytest.mark.parametrize("options", [["--schema-only"], ["--schema-only", "--no-owner", "--no-acl"]], ids=" ".join)
def test_migrate_adopts_a_schema_that_came_without_its_rows(
    source: str, fresh_db: str, tmp_path: Path, options: list[str]
) -> None:
    restore(source, fresh_db, tmp_path, *options)
    user = User(fresh_db)
    # Before: one sentence and what to do, from the client as from the command.
    with menzil.Menzil(fresh_db) as mq, pytest.raises(menzil.SchemaTooOldError, match="has schema 0") as raised:
        mq.send("billing", 1)
    assert "menzil migrate" in str(raised.value)
    assert "menzil migrate" in user.fails("channel", "list")
    told = user.gets("migrate")
    assert "adopting schema" in told
    assert "Nothing to do" in user.gets("migrate")
    with psycopg.connect(fresh_db) as conn:
        assert drift(conn) == []
    assert described(fresh_db) == described(source)
    prepare(fresh_db)
    work(fresh_db, "adopted")


def test_migrate_gives_roles_the_rights_that_a_dump_left_out(source: str, fresh_db: str, tmp_path: Path) -> None:
    restore(source, fresh_db, tmp_path, "--inserts", "--no-owner", "--no-acl")
    user = User(fresh_db)
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        assert [one.sentence for one in drift(conn) if "`menzil migrate`" in one.sentence]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            send_as_application(conn)
    assert "functions, views and roles: done" in user.gets("migrate")
    assert "Nothing to do" in user.gets("migrate")
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        assert drift(conn) == []
        send_as_application(conn)


def test_migrate_takes_from_public_what_a_dump_without_rights_gave_it(
    source: str, fresh_db: str, tmp_path: Path
) -> None:
    restore(source, fresh_db, tmp_path, "--inserts", "--no-owner", "--no-acl")
    user = User(fresh_db)
    # The repair that an administrator finds without menzil's help leaves every function to everybody.
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        conn.execute("grant usage on schema menzil to menzil_admin, menzil_application, menzil_worker")
        conn.execute("grant usage on schema menzil to menzil_monitor, menzil_pipeline")
    assert "functions, views and roles: done" in user.gets("migrate")
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        conn.execute("set role menzil_application")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("select menzil.maintain()")


def send_as_application(conn: psycopg.Connection) -> None:
    with conn.transaction():
        conn.execute("set local role menzil_application")
        conn.execute("select menzil.send('billing', '{}')")


def test_tables_without_a_noted_version_are_refused_with_what_to_do(source: str, fresh_db: str, tmp_path: Path) -> None:
    restore(source, fresh_db, tmp_path, "--schema-only", "--no-comments")
    before = catalog(fresh_db)
    said = User(fresh_db).fails("migrate")
    assert "not the rows that say which version" in said
    assert "drop schema menzil" in said
    assert catalog(fresh_db) == before


def test_a_schema_of_a_newer_menzil_is_not_adopted(source: str, fresh_db: str, tmp_path: Path) -> None:
    restore(source, fresh_db, tmp_path, "--schema-only")
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        conn.execute(f"comment on table menzil.migration is 'Schema 9999, {'0' * 64}.'")
    assert "only knows" in User(fresh_db).fails("migrate")


def test_a_printed_upgrade_says_that_migrate_adopts(source: str, fresh_db: str, tmp_path: Path) -> None:
    restore(source, fresh_db, tmp_path, "--schema-only")
    with (
        psycopg.connect(fresh_db, autocommit=True) as conn,
        pytest.raises(psycopg.errors.RaiseException, match="not the rows that say which version"),
    ):
        conn.execute(User(fresh_db).gets("sql", "upgrade"))
