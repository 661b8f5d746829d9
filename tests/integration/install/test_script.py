"""The printed scripts do exactly what a migration over a connection does."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

import psycopg
import pytest

from menzil.install import check, migrate, script
from tests.integration.install.catalog import dump
from tests.integration.install.system_postgres import PGBIN

Run = Callable[[str, str], None]


def run_with_psql(dsn: str, text: str) -> None:
    psql = PGBIN / "psql" if (PGBIN / "psql").exists() else shutil.which("psql")
    if psql is None:
        pytest.skip("no psql on this machine")
    done = subprocess.run([str(psql), "-X", "-q", "-d", dsn], input=text, text=True, capture_output=True, timeout=60)
    # Without ON_ERROR_STOP, as a hurried person would run it: an error must still leave nothing behind.
    if "ERROR" in done.stderr:
        raise RuntimeError(done.stderr)


def run_with_psycopg(dsn: str, text: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        try:
            conn.execute(text)
        except psycopg.Error as error:
            raise RuntimeError(str(error)) from error


@pytest.fixture(params=[run_with_psql, run_with_psycopg], ids=["psql", "psycopg"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param


def test_install_script_equals_migrate(empty, another, plant, run):
    root = plant(2)
    migrate(empty, root=root)
    run(another, script("install", root=root))
    assert dump(empty) == dump(another)
    assert not migrate(another, root=root).changed


def test_scripts_of_the_package_equal_migrate(empty, another, run):
    migrate(empty)
    run(another, script("install"))
    assert dump(empty) == dump(another)
    run(another, script("upgrade"))
    assert dump(empty) == dump(another)
    assert not migrate(another).changed


@pytest.mark.parametrize("start", [None, 1])
def test_upgrade_script_applies_only_what_is_outstanding(empty, another, plant, run, start):
    migrate(empty, root=plant(2))
    migrate(another, root=plant(1))
    text = script("upgrade", start=start, root=plant(2))
    run(another, text)
    assert dump(empty) == dump(another)
    run(another, text)
    assert dump(empty) == dump(another)
    assert not migrate(another, root=plant(2)).changed


def test_migrate_continues_what_a_script_began(empty, plant, run):
    run(empty, script("install", root=plant(1)))
    assert migrate(empty, root=plant(2)).applied == ["0002_second"]


def test_install_script_refuses_an_installed_database(empty, plant, run):
    run(empty, script("install", root=plant(1)))
    before = dump(empty)
    with pytest.raises(RuntimeError, match="already installed"):
        run(empty, script("install", root=plant(2)))
    assert dump(empty) == before


def test_upgrade_script_refuses_what_it_does_not_continue(empty, another, plant, run):
    migrate(empty, root=plant(2))
    before = dump(empty)
    with pytest.raises(RuntimeError, match="this script knows 1 at most"):
        run(empty, script("upgrade", root=plant(1)))
    root = plant(2)
    (root / "migrations/0001_first.sql").write_text("create table menzil.toy ();\n")
    with pytest.raises(RuntimeError, match=r"migration 1 in database .* is not the one"):
        run(empty, script("upgrade", root=root))
    assert dump(empty) == before
    with pytest.raises(RuntimeError, match="this script starts from 2"):
        run(another, script("upgrade", start=2, root=root))


def test_failing_script_leaves_nothing(empty, plant, run):
    root = plant(2)
    (root / "views/zz_broken.sql").write_text("create view menzil.broken as select * from menzil.nowhere;\n")
    for kind in ("install", "upgrade"):
        with pytest.raises(RuntimeError, match="nowhere"):
            run(empty, script(kind, root=root))
    with psycopg.connect(empty) as conn:
        assert conn.execute("select count(*) from pg_namespace where nspname = 'menzil'").fetchone() == (0,)


def test_uninstall_then_install(empty, plant, run):
    root = plant(2)
    migrate(empty, root=root)
    before = dump(empty)
    run(empty, script("uninstall", root=root))
    with psycopg.connect(empty) as conn:
        assert check(conn, root=root).verdict == "missing"
    run(empty, script("uninstall", root=root))
    migrate(empty, root=root)
    assert dump(empty) == before
