"""Every test of the installer runs on the embedded PostgreSQL and, where there is one, on the system's older one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.integration.install import toy
from tests.integration.install.old_release import unpack
from tests.integration.install.system_postgres import missing, system_postgres

Plant = Callable[[int], Path]
NAMES = ("install_one", "install_two")


@pytest.fixture(scope="session")
def system_dsn() -> Iterator[str]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    with system_postgres() as dsn:
        yield dsn


@pytest.fixture(scope="session", params=["embedded", "system"])
def databases(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Two databases of the server under test; making them anew for every test would be most of the time."""
    system = request.param == "system"
    dsn = request.getfixturevalue("system_dsn") if system else request.getfixturevalue("server").dsn
    with psycopg.connect(dsn, autocommit=True) as conn:
        for name in NAMES:
            conn.execute(f"create database {name}")
        yield make_conninfo(dsn, dbname=NAMES[0]), make_conninfo(dsn, dbname=NAMES[1])
        for name in NAMES:
            conn.execute(f"drop database {name} with (force)")


@pytest.fixture
def suffix(databases: tuple[str, str]) -> Iterator[str]:
    """An ending for the names of roles; afterwards all roles that end so are gone, and menzil with them."""
    ending = uuid.uuid4().hex[:8]
    yield ending
    for dsn in databases:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("drop schema if exists menzil, menzil_lake cascade")
            roles = conn.execute("select rolname from pg_roles where rolname like %s", ["%" + ending]).fetchall()
            for (role,) in roles:
                conn.execute(f"drop owned by {role}")
    with psycopg.connect(databases[0], autocommit=True) as conn:
        for (role,) in roles:
            conn.execute(f"drop role {role}")


@pytest.fixture
def empty(databases: tuple[str, str], suffix: str) -> str:
    """A superuser's DSN of a database without menzil."""
    return databases[0]


@pytest.fixture
def another(databases: tuple[str, str], suffix: str) -> str:
    """A second database without menzil, to compare with."""
    return databases[1]


@pytest.fixture
def toy_role(suffix: str) -> str:
    return f"menzil_toy_{suffix}"


@pytest.fixture
def plant(tmp_path: Path, toy_role: str) -> Plant:
    """Write the toy tree as it was after so many releases, each into a directory of its own."""
    return lambda releases: toy.plant(tmp_path / f"release_{releases}", role=toy_role, releases=releases)


@pytest.fixture(scope="session")
def old_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SQL tree of release 0.1.0."""
    return unpack(tmp_path_factory.mktemp("release"))


@pytest.fixture
def plain(empty: str, suffix: str) -> Iterator[psycopg.Connection]:
    """A connection to the empty database as a role without any rights or attributes."""
    with psycopg.connect(empty, autocommit=True) as conn:
        conn.execute(f"create role plain_{suffix}")
        # A session of that role, whatever the server's rules for logging in are.
        conn.execute(f"set session authorization plain_{suffix}")
        yield conn
