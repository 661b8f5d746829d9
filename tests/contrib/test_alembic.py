"""Alembic: the example's migrations with every driver, printed, checked, and repeated."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import alembic.autogenerate
import alembic.migration
import alembic.operations
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

import menzil
from menzil.contrib.alembic import include_name, include_object, upgrade
from menzil.contrib.sqlalchemy import tables
from menzil.model.errors import UsageError
from tests.acceptance.test_orms import url

ROOT = Path(__file__).resolve().parents[2]


def run_alembic(dsn: str, *command: str) -> str:
    ini = str(ROOT / "examples" / "alembic" / "alembic.ini")
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "-c", ini, *command],
        env={**os.environ, "MENZIL_DSN": dsn, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_installs_menzil_and_autogenerate_finds_nothing_to_change(fresh_db: str) -> None:
    printed = run_alembic(fresh_db, "upgrade", "head", "--sql")
    with psycopg.connect(fresh_db, autocommit=True) as conn:
        conn.execute("create schema other")
        conn.execute(f"begin; {printed.partition('BEGIN;')[2].rpartition('COMMIT;')[0]}; rollback")
        assert conn.execute("select to_regclass('menzil.message')").fetchone() == (None,)
    run_alembic(fresh_db, "upgrade", "head")
    assert "No new upgrade operations detected" in run_alembic(fresh_db, "check")
    with menzil.Menzil(fresh_db) as mq, psycopg.connect(fresh_db) as conn:
        mq.send("billing", {"order": 42})
        where = conn.execute("select to_regclass('public.alembic_order'), to_regclass('public.alembic_version')")
        assert None not in (where.fetchone() or (None,))


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg async", "asyncpg"])
def test_an_upgrade_leaves_the_settings_of_the_transaction_as_they_were(db: str, driver: str) -> None:
    seen: list[str] = []

    def migrate(conn: sqlalchemy.Connection) -> None:
        ask = sqlalchemy.text(
            "select current_setting('search_path') || current_setting('lock_timeout') || current_user"
        )
        conn.execute(sqlalchemy.text("set local search_path = other, public"))
        seen.append(conn.execute(ask).scalar_one())
        context = alembic.migration.MigrationContext.configure(conn)
        upgrade(alembic.operations.Operations(context), schema=1)
        seen.append(conn.execute(ask).scalar_one())
        seen.append(conn.execute(sqlalchemy.text("select menzil.schema_version()::text")).scalar_one())

    if driver == "psycopg2":
        engine = sqlalchemy.create_engine(url(db, driver), poolclass=NullPool)
        with engine.begin() as conn:
            migrate(conn)
    else:

        async def in_loop() -> None:
            own = create_async_engine(url(db, driver.partition(" ")[0]), poolclass=NullPool)
            async with own.begin() as conn:
                await conn.run_sync(migrate)

        asyncio.run(in_loop())
    assert seen[0] == seen[1]
    assert len(seen) == 3


def test_a_migration_that_cannot_work_is_refused(db: str) -> None:
    lite = alembic.migration.MigrationContext.configure(sqlalchemy.create_engine("sqlite://").connect())
    with pytest.raises(UsageError, match="sqlite"):
        upgrade(alembic.operations.Operations(lite))
    with pytest.raises(UsageError, match="schema 9999"):
        upgrade(alembic.operations.Operations(lite), schema=9999)
    engine = sqlalchemy.create_engine(url(db), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as conn, pytest.raises(UsageError, match="autocommit"):
        upgrade(alembic.operations.Operations(alembic.migration.MigrationContext.configure(conn)))


@pytest.mark.filterwarnings("ignore:Did not recognize type")
@pytest.mark.parametrize("name", ["include_name", "include_object"])
def test_either_filter_keeps_autogenerate_away(db: str, name: str) -> None:
    filters: dict[str, Any] = {"include_name": include_name, "include_object": include_object}
    engine = sqlalchemy.create_engine(url(db), poolclass=NullPool)

    def changes(**options: Any) -> list[Any]:
        context = alembic.migration.MigrationContext.configure(conn, opts={"include_schemas": True, **options})
        found: list[Any] = alembic.autogenerate.compare_metadata(context, metadata)
        return found

    metadata = sqlalchemy.MetaData()
    with engine.begin() as conn:
        assert changes(), "without a filter it wants to drop menzil's tables"
        assert changes(**{name: filters[name]}) == []
        conn.execute(sqlalchemy.text("create table mine (id int)"))
        assert [change[0] for change in changes(**{name: filters[name]})] == ["remove_table"]
    assert not include_object(tables.queue, "queue", "table")
