"""One database and one session for all tests of the SQL layer, emptied before each.

That is cheaper than a clone and a cold session for every test, and nearer to a queue that has been used.
MENZIL_TEST_SERVER=system runs the layer on the PostgreSQL of the machine (see PGBIN) instead of the embedded one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.install import migrate
from tests.integration.install.system_postgres import missing, system_postgres
from tests.sql.emptying import empty
from tests.sql.queue import Queue

Connect = Callable[..., psycopg.Connection]


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Any]:
    if os.environ.get("MENZIL_TEST_SERVER") != "system":
        yield request.getfixturevalue("server")
        return
    reason = missing()
    if reason:
        pytest.fail(reason)
    with system_postgres() as dsn:
        yield SimpleNamespace(dsn=dsn)


@pytest.fixture(scope="session")
def layer_db(server: Any) -> Iterator[str]:
    """The DSN of the database that the tests of this layer share."""
    dsn = make_conninfo(server.dsn, dbname="sql_layer")
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute("create database sql_layer")
        migrate(dsn)
        yield dsn
        conn.execute("drop database sql_layer with (force)")


@pytest.fixture(scope="session")
def session(layer_db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(layer_db, autocommit=True) as conn:
        yield conn


@pytest.fixture
def conn(session: psycopg.Connection) -> psycopg.Connection:
    """A superuser's connection in autocommit, to an empty queue."""
    session.rollback()
    session.execute("reset all; reset session authorization; discard temp")
    empty(session)
    return session


@pytest.fixture
def connect(conn: psycopg.Connection, layer_db: str) -> Iterator[Connect]:
    """Open more connections; all are closed after the test."""
    opened: list[psycopg.Connection] = []

    def connect(**options: Any) -> psycopg.Connection:
        opened.append(psycopg.connect(layer_db, **{"autocommit": True, **options}))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


@pytest.fixture
def queue(conn: psycopg.Connection) -> Queue:
    """The public functions on that connection, with one channel named work."""
    conn.execute("select menzil.channel_set('work')")
    return Queue(conn)
