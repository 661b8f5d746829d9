"""The revision that `menzil sql upgrade --alembic` prints, in a project of Alembic with a database of release 0.1.0."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

import menzil
from menzil.cli.main import main
from menzil.install import drift, migrate, revision
from menzil.model.version import SCHEMA_VERSION_KNOWN
from tests.contrib.test_alembic import ROOT
from tests.integration.install.old_release import unpack

#: Several commands of Alembic in one process, separated by commas: importing SQLAlchemy takes most of the time.
COMMANDS = """
import sys
from alembic.config import main
for command in " ".join(sys.argv[2:]).split(" , "):
    main(["-c", sys.argv[1], *command.split()])
"""


def run(*command: str, dsn: str = "", status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "MENZIL_DSN": dsn},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "examples" / "alembic", tmp_path / "alembic"))


@pytest.mark.parametrize("options", [(), ("--from", "5")], ids=["whole", "from"])
def test_a_printed_revision_upgrades_an_older_database(
    fresh_db: str, project: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    ini = str(project / "alembic.ini")
    migrate(fresh_db, root=unpack(tmp_path / "old"))
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        conn.execute("create table alembic_order (id serial primary key, customer varchar not null)")
        conn.execute("select menzil.channel_set('billing')")
        conn.execute("select menzil.send('billing', '{\"order\": 42}')")
    printed = run("-m", "menzil", "sql", "upgrade", "--alembic", "--revises", "0002", *options).stdout
    (project / "versions" / "0003_menzil.py").write_text(printed)
    steps = "stamp 0002 , upgrade 0002:head --sql , upgrade head , check"
    done = run("-c", COMMANDS, ini, steps, dsn=fresh_db)

    assert "create or replace function menzil.send" in done.stdout, "the printed upgrade"
    assert "No new upgrade operations detected" in done.stdout
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        assert conn.execute("select installed from menzil.schema_window()").fetchone() == (SCHEMA_VERSION_KNOWN,)
        assert drift(conn) == []
        assert conn.execute("select payload from menzil.queue").fetchall() == [({"order": 42},)]
    assert "indexes of menzil are left to build: run `menzil migrate`" in done.stderr
    built = migrate(fresh_db)
    assert built.indexes
    assert not built.applied
    assert not built.code_applied
    with menzil.Menzil(fresh_db) as mq:
        mq.send("billing", {"order": 43})


def test_a_first_revision_follows_none_and_each_place_has_an_id_of_its_own() -> None:
    first, again, later = revision(), revision(), revision(revises="ab12")
    assert first == again, "the same release prints the same file"
    found = [re.findall(r"^(?:down_)?revision = (\S+)", text, re.MULTILINE) for text in (first, later)]
    assert [down for _, down in found] == ["None", '"ab12"']
    assert found[0][0] != found[1][0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--revises", "0002"), "--alembic"),
        (("--alembic", "--revises", "0002; drop"), "is not the id of a revision"),
        (("--alembic", "--from", "99"), "There is no schema 99"),
    ],
)
def test_options_that_make_no_revision_are_refused(options: tuple[str, ...], sentence: str) -> None:
    done = CliRunner().invoke(main, ["sql", "upgrade", *options])
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert done.stdout == ""
