"""Databases that live as long as a test module: filling them takes seconds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Protocol

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from menzil.embedded import Embedded
from tests.conftest import adopt

_numbers = itertools.count(1)


class NewDb(Protocol):
    def __call__(self, like: str | None = None) -> str: ...


@pytest.fixture(scope="module")
def new_db(server: Embedded, _installed: str) -> Iterator[NewDb]:
    """Makes databases with menzil installed, or copies of one without connections; returns their DSNs."""
    names: list[str] = []

    def make(like: str | None = None) -> str:
        template = conninfo_to_dict(like)["dbname"] if like else _installed
        names.append(f"plans_{next(_numbers)}")
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute(f"create database {names[-1]} template {template} strategy file_copy")
        dsn = make_conninfo(server.dsn, dbname=names[-1])
        adopt(dsn)
        return dsn

    yield make
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        for name in names:
            conn.execute(f"drop database {name} with (force)")
