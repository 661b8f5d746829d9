"""The tests of the command line share one database per file, emptied before each: a clone for every test would take
most of the time.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from menzil import Menzil
from menzil.embedded import Embedded
from tests.conftest import database
from tests.integration.cli.user import User
from tests.sql.emptying import empty


@pytest.fixture(scope="module")
def cli_db(server: Embedded, _installed: str) -> Iterator[str]:
    """The DSN of the database that the tests of one file share."""
    with database(server, "cli", _installed) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def keeper(cli_db: str) -> Iterator[psycopg.Connection]:
    """Empties the queue between tests; a session that has done so before does it five times as fast."""
    with psycopg.connect(cli_db, autocommit=True) as conn:
        yield conn


@pytest.fixture
def user(cli_db: str, keeper: psycopg.Connection) -> User:
    """A console in front of an empty queue with one channel named work."""
    empty(keeper)
    keeper.execute("select menzil.channel_set('work')")
    return User(cli_db)


@pytest.fixture
def mq(user: User) -> Iterator[Menzil]:
    """A program that uses the same queue."""
    with Menzil(user.dsn) as client:
        yield client
