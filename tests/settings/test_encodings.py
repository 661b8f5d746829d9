"""Databases that are not UTF8: one that knows no characters is refused, one that knows few works and says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import menzil
from menzil.embedded import Embedded
from menzil.install import InstallError, migrate, script
from tests.acceptance.receiver import receiver
from tests.integration.cli.user import User
from tests.settings.day import prepare, work


@contextmanager
def encoded(server: Embedded, encoding: str) -> Iterator[str]:
    """The DSN of an empty database with this encoding."""
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        locale = "locale_provider libc lc_collate 'C' lc_ctype 'C'"
        conn.execute(f"create database encoded template template0 encoding '{encoding}' {locale}")
        yield make_conninfo(server.dsn, dbname="encoded")
        conn.execute("drop database encoded with (force)")


def has_schema(dsn: str) -> bool:
    with psycopg.connect(dsn) as conn:
        return conn.execute("select from pg_namespace where nspname = 'menzil'").fetchone() is not None


def test_sql_ascii_is_refused_before_the_first_statement(server: Embedded) -> None:
    with encoded(server, "SQL_ASCII") as dsn:
        said = User(dsn).fails("migrate")
        assert "has the encoding SQL_ASCII" in said
        assert "encoding 'UTF8'" in said
        with psycopg.connect(dsn, autocommit=True) as conn:  # psycopg reads bytes from it, where it would read texts
            with pytest.raises(InstallError, match="encoding SQL_ASCII"):
                migrate(conn)
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="encoding SQL_ASCII"):
                conn.execute(script("install"))
        assert not has_schema(dsn)


def test_latin1_works_and_the_doctor_says_what_it_cannot_store(server: Embedded) -> None:
    with encoded(server, "LATIN1") as dsn:
        migrate(dsn)
        prepare(dsn)
        work(dsn, "latin", findings={"encoding"})
        found = {one["check"]: one for one in json.loads(User(dsn).types("doctor", "--json").stdout)["findings"]}
        assert found["encoding"]["level"] == "warning"
        assert "LATIN1" in found["encoding"]["sentence"]
        assert "UTF8" in found["encoding"]["repair"]
        with menzil.Menzil(dsn) as mq, pytest.raises(menzil.InvalidValueError, match="LATIN1"):
            mq.send("plain-latin", {"price": "5 €"})
        outcomes_survive(dsn)


def outcomes_survive(dsn: str) -> None:
    """A character of a handler or a receiver that the database cannot store changes no outcome."""
    app = menzil.Worker(dsn, channels=["plain-latin", "cash"])

    @app.handler("plain-latin")
    async def handle(message: menzil.Message) -> None:
        raise ValueError("5 € missing")

    with receiver() as hook, menzil.Menzil(dsn) as mq:
        hook.answer = "5 € received".encode()
        mq.create_endpoint("cash", "http", {"url": hook.url})
        mq.set_setting("capture_response", True)
        sent, posted = mq.send("plain-latin", 1), mq.send("cash", 1)
        asyncio.run(asyncio.wait_for(app.serve(once=True), 30))
        assert mq.status(posted).status == "completed"
        assert hook.bodies == ["1"]
        assert "\\u20ac missing" in str(mq.status(sent).last_error)
