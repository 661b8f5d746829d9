"""The tests of watch share one database per file, emptied before each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import psycopg
import pytest

from menzil import Menzil
from menzil.embedded import Embedded
from menzil.ops.op import Op
from menzil.ops.run import run as run_op
from tests.conftest import database
from tests.sql.emptying import empty

T = TypeVar("T")


@pytest.fixture(scope="module")
def watched_db(server: Embedded, _installed: str) -> Iterator[str]:
    """The DSN of the database that the tests of one file share."""
    with database(server, "watched", _installed) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def keeper(watched_db: str) -> Iterator[psycopg.Connection]:
    """Empties the queue between tests; a session that has done so before does it five times as fast."""
    with psycopg.connect(watched_db, autocommit=True) as conn:
        yield conn


@pytest.fixture(scope="module")
def looker(watched_db: str) -> Iterator[psycopg.Connection]:
    """Who looks writes nothing."""
    with psycopg.connect(watched_db, autocommit=True, options="-c default_transaction_read_only=on") as conn:
        yield conn


class Seat:
    """Somebody who looks: runs Ops, and counts the statements that it takes."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self.conn = conn
        self.asked: list[str] = []

    def __call__(self, op: Op[T]) -> T:
        self.asked.append(op.text)
        return run_op(self.conn, op)


@pytest.fixture
def seat(keeper: psycopg.Connection, looker: psycopg.Connection) -> Seat:
    """A console in front of an empty queue with one channel named work."""
    empty(keeper)
    keeper.execute("select menzil.channel_set('work')")
    return Seat(looker)


@pytest.fixture
def mq(watched_db: str, seat: Seat) -> Iterator[Menzil]:
    """A program that uses the same queue."""
    with Menzil(watched_db) as client:
        yield client
