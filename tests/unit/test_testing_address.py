"""The address of a test's database: a URL, which means to libpq and to SQLAlchemy what the server's address meant."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url

from menzil.testing.addressing import url_of


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://ada:s%40cret%2F%25@db.example:6432/old?sslmode=require&application_name=a%20b",
        "host=127.0.0.1 port=5432 user=ada password='it\\'s \\\\ a: secret' dbname=old",
        "postgresql://ada@[::1]:5433/old",
        "host=/var/run/postgresql port=5433 user=ada",
        "host=one,two port=5432,5433 user=ada",
        "hostaddr=127.0.0.1 user=ada",
        "",
    ],
)
def test_only_the_database_changes(dsn: str) -> None:
    url = url_of(dsn, "a test/1")
    assert conninfo_to_dict(url) == conninfo_to_dict(dsn) | {"dbname": "a test/1"}


def test_sqlalchemy_reads_it() -> None:
    url = make_url(url_of("host=127.0.0.1 port=5432 user=ada password='a:b@c'", "shop"))
    assert (url.host, url.port, url.username, url.password, url.database) == (
        "127.0.0.1", 5432, "ada", "a:b@c", "shop",
    )  # fmt: skip
    socket = make_url(url_of("host=/run/pg user=ada", "shop"))
    assert (socket.host, socket.query["host"], socket.database) == (None, "/run/pg", "shop")
