"""Databases that live as long as a test module: filling them takes seconds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded
from tests.conftest import adopt

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def new_db(server: Embedded, _installed: str) -> Iterator[Callable[[], str]]:
    """Makes databases with menzil installed; returns their DSNs."""
    names: list[str] = []

    def make() -> str:
        names.append(f"plans_{next(_numbers)}")
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute(f"create database {names[-1]} template {_installed} strategy file_copy")
        dsn = make_conninfo(server.dsn, dbname=names[-1])
        adopt(dsn)
        return dsn

    yield make
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        for name in names:
            conn.execute(f"drop database {name} with (force)")
