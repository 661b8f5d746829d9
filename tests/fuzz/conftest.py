"""A database that the properties of this directory share, and a connection to it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from menzil.embedded import Embedded
from tests.conftest import database


@pytest.fixture(scope="session")
def fuzz_db(server: Embedded, _installed: str) -> Iterator[str]:
    with database(server, "fuzz", _installed) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def conn(fuzz_db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(fuzz_db, autocommit=True) as connection:
        yield connection
