"""Several databases on the server of the tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from menzil.embedded import Embedded
from tests.conftest import database

_numbers = itertools.count(1)

#: Makes a database with so many messages in the channel `orders`, and returns its DSN.
Make = Callable[[int], str]


@pytest.fixture
def make(server: Embedded, _installed: str) -> Iterator[Make]:
    with ExitStack() as stack:

        def one(messages: int = 0) -> str:
            dsn = stack.enter_context(database(server, f"several_{next(_numbers)}", _installed))
            fill(dsn, messages)
            return dsn

        yield one


def fill(dsn: str, messages: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('orders')")
        if messages:
            payloads = "array(select to_jsonb(n) from generate_series(1, %s) n)"
            conn.execute(f"select menzil.send_batch('orders', {payloads})", (messages,))


def left(dsn: str) -> int:
    """Messages that have not ended."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        row = conn.execute("select count(*) from menzil.queue").fetchone()
        assert row is not None
        return int(row[0])
