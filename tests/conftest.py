"""Real databases for tests: one server per test process, a fresh or an installed database per test."""

from __future__ import annotations

import gc
import itertools
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded
from menzil.install import migrate
from tests.memory import MEMORY

_numbers = itertools.count(1)

# Until all tests are collected, the collector would look again and again at what stays to the end.
gc.disable()

#: What a test of a folder takes on average, in seconds, and one that is marked slow. Only their order matters.
SECONDS = {
    "model": 25, "spark": 4, "strangers": 2.5, "acceptance": 1.5, "bridge": 1.4, "plans": 1.2, "settings": 1,
    "torture": 0.9, "console": 0.7, "fuzz": 0.7, "testing": 0.7, "contrib": 0.6, "brokers": 0.5, "integration": 0.5,
    "telemetry": 0.3, "races": 0.2,
}  # fmt: skip
OTHERS, SLOW = 0.1, 10.0


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of several test processes, none shall begin a long file when the others have finished: the longest go first."""
    if not hasattr(config, "workerinput"):
        return
    files: dict[str, float] = defaultdict(float)
    for item in items:
        folder = item.nodeid.split("/")[1]
        files[item.nodeid.split("::")[0]] += SLOW if item.get_closest_marker("slow") else SECONDS.get(folder, OTHERS)
    items.sort(key=lambda item: -files[item.nodeid.split("::")[0]])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Eight thousand tests and what they import stay to the end: the collector need not look at them again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Which test process runs which file. Other modes of pytest-xdist stay as they are."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.turns import Turns

    return Turns(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which directory took how long; divided by the number of test processes it is what the run waits for."""
    spent: dict[str, float] = defaultdict(float)
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            spent["/".join(report.nodeid.split("/")[:2]).split("::")[0]] += report.duration
    if sum(spent.values()) > 60:
        told = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in sorted(spent.items(), key=lambda one: -one[1]))
        terminalreporter.write_line(f"time in tests: {told}")


@pytest.fixture(scope="session")
def server() -> Iterator[Embedded]:
    """The server of this test process; its `dsn` is a superuser's."""
    # Not below pytest's own directory: under root another account runs the server and may not pass through it.
    with tempfile.TemporaryDirectory(prefix="mz-", dir=MEMORY, ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        running = Embedded(Path(place) / "pg", durable=False).start()
        _shorten_logins(running.dsn)
        yield running
        running.close(wait=30)


def _shorten_logins(dsn: str) -> None:
    """One round of hashing for a password instead of 4096: a login costs 2 ms instead of 5, and tests log in often."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        if conn.info.server_version < 160000:
            return  # PostgreSQL 15 always takes 4096
        conn.execute("set scram_iterations = 1")
        conn.execute(sql.SQL("alter role current_user password {}").format(sql.Literal(conn.info.password)))


@contextmanager
def database(server: Embedded, name: str, template: str) -> Iterator[str]:
    """A database of this name, for as long as it is used."""
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        # Files are copied as files: the default writes every page to the log, and the drop finds all of them dirty.
        conn.execute(f"create database {name} template {template} strategy file_copy")
        dsn = make_conninfo(server.dsn, dbname=name)
        if template != "template1":
            adopt(dsn)
        yield dsn
        drop_database(conn, name)


def drop_database(conn: psycopg.Connection, name: str) -> None:
    """Drop it with all its sessions. `drop database` sleeps 100 ms while a session is on its way out, so wait here."""
    conn.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (name,))
    deadline = time.monotonic() + 5
    while conn.execute("select from pg_stat_activity where datname = %s", (name,)).fetchone():
        if time.monotonic() > deadline:
            break
    conn.execute(f"drop database {name} with (force)")


def adopt(dsn: str) -> None:
    """Make a clone live: it knows that it is one. Like menzil.adopt, but without a line in the event log."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil._record_home()")


@pytest.fixture(scope="session")
def _installed(server: Embedded) -> Iterator[str]:
    # A template must have no connections, and migrate() closes its own.
    with database(server, "installed", "template1") as dsn:
        migrate(dsn)
        yield "installed"


@pytest.fixture
def fresh_db(server: Embedded) -> Iterator[str]:
    """The DSN of an empty database."""
    with database(server, f"fresh_{next(_numbers)}", "template1") as dsn:
        yield dsn


@pytest.fixture
def db(server: Embedded, _installed: str) -> Iterator[str]:
    """The DSN of a database with menzil installed."""
    with database(server, f"db_{next(_numbers)}", _installed) as dsn:
        yield dsn
