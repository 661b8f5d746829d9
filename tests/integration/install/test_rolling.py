"""Workers and clients of an older release go on while the database is migrated, and may start anew afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menzil.install import check, migrate
from tests.acceptance.crew import Crew, crew_on, until
from tests.integration.install.old_release import BEFORE_THE_WINDOW, RELEASE, unpack_package

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it was before the window."""
    return unpack_package(tmp_path_factory.mktemp("before"), BEFORE_THE_WINDOW)


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of 0.1.0."""
    return unpack_package(tmp_path_factory.mktemp("first"), RELEASE)


def menzil(package: Path, dsn: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command of another release."""
    env = {**os.environ, "PYTHONPATH": str(package), "MENZIL_DSN": dsn}
    command = [sys.executable, "-m", "menzil", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def crew(fresh_db: str, before: Path) -> Iterator[Crew]:
    """Workers of the older release on a database that it installed."""
    done = menzil(before, fresh_db, "migrate")
    assert done.returncode == 0, done.stderr
    place = Path(tempfile.mkdtemp(prefix="mzr-"))
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('quick')")
    for crew in crew_on(fresh_db, place):
        crew.channels.append("quick")
        yield crew
    shutil.rmtree(place, ignore_errors=True)


class Sender:
    """A client of the older release, in a process of its own."""

    def __init__(self, package: Path, dsn: str) -> None:
        env = {**os.environ, "PYTHONPATH": str(package), "MENZIL_DSN": dsn}
        command = [sys.executable, str(HERE / "old_sender.py")]
        self.process = subprocess.Popen(command, env=env, stdin=-1, stdout=-1, text=True)
        self.sent: list[int] = []
        self.refusals: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("refused"):
                self.refusals.append(line)
            else:
                self.sent += map(int, line.split())

    def ends(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(30)
        self._reader.join(30)
        return code


@pytest.mark.slow
def test_workers_are_replaced_one_by_one_while_the_database_is_migrated(crew: Crew, before: Path) -> None:
    old: dict[str, Any] = {"PYTHONPATH": str(before)}
    sender, veteran = Sender(before, crew.dsn), crew.start(**old)
    until(lambda: len(sender.sent) > 200 and crew.completed("quick") > 100, "the older release is at work")
    report = migrate(crew.dsn)
    assert report.applied
    done = crew.completed("quick")
    until(lambda: crew.completed("quick") > done + 100, "the older worker goes on")
    restarted = crew.start(**old)  # a pod that is moved to another host before its turn to be replaced has come
    newcomer = crew.start()
    for worker in (restarted, newcomer):
        until(lambda pid=str(worker.pid): any(line[4] == pid for line in crew.traced()), "all three work side by side")  # type: ignore[misc]
    assert [worker.stop() for worker in (veteran, restarted)] == [0, 0]
    sent = len(sender.sent)
    until(lambda: len(sender.sent) > sent + 50, "the older client goes on")
    assert sender.ends() == 0
    ended = "select count(*) from menzil.archive where status = 'completed' and id = any (%s)"
    until(lambda: crew.ask(ended, sender.sent) == len(sender.sent), "everything that was sent is handled")
    assert newcomer.stop() == 0
    # A call that waited for the switch may be refused once by the function that had just changed.
    assert len(sender.refusals) <= 1, sender.refusals
    failed = [line for worker in (veteran, restarted, newcomer) for line in worker.lines if " ERROR " in line]
    assert len(failed) <= 2, failed
    assert {str(id) for id in sender.sent} <= {line[2] for line in crew.traced()}


def test_an_old_start_script_that_migrates_first_leaves_a_newer_database_alone(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("insert into menzil.migration values (10000, 'of_tomorrow', 'x')")
        conn.execute("update menzil.installed_code set schema_version = 10000")
        told: list[str] = []
        report = migrate(db, progress=told.append)
        assert (report.changed, report.to_version) == (False, 10000)
        assert "serves both" in told[0]
        status = check(conn)
        assert (status.verdict, status.newer) == ("ok", True)
    done = subprocess.run(
        [sys.executable, "-m", "menzil", "doctor", "--dsn", db], capture_output=True, text=True, timeout=60
    )
    assert "it still serves this one" in done.stdout


@pytest.mark.parametrize("words", [("send", "quick", "1"), ("worker", "--once"), ("migrate",)])
def test_a_command_of_0_1_0_is_refused_with_a_sentence(db: str, first: Path, words: tuple[str, ...]) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('quick')")
        done = menzil(first, db, *words)
        assert done.returncode == 2
        assert "schema" in done.stderr
        assert "Hint: upgrade the menzil package in this process" in done.stderr
        assert "Traceback" not in done.stderr
        assert conn.execute("select count(*) from menzil.message").fetchone() == (0,)


def test_a_client_of_0_1_0_is_told_to_upgrade(db: str, first: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(first)}
    program = f"import menzil\nmenzil.Menzil({db!r}).send('quick', 1)"
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
    last = done.stderr.strip().splitlines()[-2:]
    assert last == [
        "menzil.model.errors.SchemaTooNewError: The database has schema 7; this client knows 5.",
        "Hint: upgrade the menzil package in this process",
    ]
