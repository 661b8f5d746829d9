"""`menzil worker --dsn-file`: signals, a file that changes, and what is written to the log."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from menzil.embedded import Embedded
from tests.acceptance.crew import Process, until
from tests.conftest import database


@pytest.fixture
def pair(server: Embedded, db: str) -> Iterator[dict[str, str]]:
    with database(server, "acceptance_second", "installed") as other:
        for dsn in (db, other):
            with psycopg.connect(dsn, autocommit=True) as conn:
                conn.execute("select menzil.channel_set('quick')")
        yield {"first": db, "second": other}


def send(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.send('quick', '1')")


def test_sighup_reads_the_file_again_and_a_broken_one_changes_nothing(pair: dict[str, str], tmp_path: Path) -> None:
    file, trace = tmp_path / "databases", tmp_path / "trace"
    both = "".join(f"{name} {dsn}\n" for name, dsn in pair.items())
    file.write_text(both)
    worker = Process(["apps:app", "--channels", "quick", "--dsn-file", str(file)], {"TRACE": str(trace)})
    try:
        worker.says("started database=first")
        worker.says("started database=second")
        file.write_text(f"{both}third postgresql://ada:hidden@db1/x?sslmod=off\n")
        worker.send(signal.SIGHUP)
        said = worker.says("reload_failed")
        assert "it has no parameter sslmod, but sslmode" in said
        assert "line 3 of" in said
        send(pair["second"])
        until(lambda: trace.exists() and len(trace.read_text().splitlines()) == 1, "the second is still served")
        file.write_text(f"first {pair['first']}\n")
        worker.send(signal.SIGHUP)
        worker.says("databases serving=1 removed=second")
        worker.says("stopped database=second")
        send(pair["first"])
        until(lambda: len(trace.read_text().splitlines()) == 2, "the first is served")
        assert worker.stop() == 0
        worker.says("stopped database=first")
    finally:
        worker.kill()
    text = "\n".join(worker.lines)
    assert "hidden" not in text
    assert str(conninfo_to_dict(pair["first"])["password"]) not in text


def test_a_command_that_changes_something_refuses_a_second_database(pair: dict[str, str]) -> None:
    import subprocess
    import sys

    words = ["channel", "pause", "quick", *(word for dsn in pair.values() for word in ("--dsn", dsn))]
    done = subprocess.run([sys.executable, "-m", "menzil", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "`menzil channel pause` works on one database, and --dsn is given 2 times." in done.stderr
