"""The tests of the command line share one database per file, emptied before each: a clone for every test would take
most of the time.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil import Menzil
from menzil.embedded import Embedded
from tests.conftest import adopt
from tests.integration.cli.user import User
from tests.sql.emptying import empty


@pytest.fixture(scope="module")
def cli_db(server: Embedded, _installed: str) -> Iterator[str]:
    """The DSN of the database that the tests of one file share."""
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute(f"create database cli template {_installed}")
        dsn = make_conninfo(server.dsn, dbname="cli")
        adopt(dsn)
        yield dsn
        conn.execute("drop database cli with (force)")


@pytest.fixture
def user(cli_db: str) -> User:
    """Somebody in front of an empty queue with one channel named work."""
    with psycopg.connect(cli_db, autocommit=True) as conn:
        empty(conn)
        conn.execute("select menzil.channel_set('work')")
    return User(cli_db)


@pytest.fixture
def mq(user: User) -> Iterator[Menzil]:
    """A program that uses the same queue."""
    with Menzil(user.dsn) as client:
        yield client
