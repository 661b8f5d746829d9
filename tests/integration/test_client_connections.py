"""Sending on the connection the caller already has: psycopg, SQLAlchemy and Django, and what is left as it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy
from django.conf import settings
from django.db import connections, transaction
from django.db.backends.sqlite3.base import DatabaseWrapper as SqliteWrapper
from django.utils.connection import ConnectionProxy
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg.types.json import set_json_dumps, set_json_loads
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine

import menzil


def waiting(mq: menzil.Menzil) -> list[Any]:
    return [message.payload for message in mq.peek("billing", 100)]


# --- psycopg ----------------------------------------------------------------------------------------------------------


class Shouting(Loader):
    """An adapter of the caller's that nobody expects."""

    def load(self, data: Any) -> str:
        return bytes(data).decode().upper()


def test_the_callers_connection_stays_as_it_was(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db, row_factory=dict_row, cursor_factory=psycopg.ClientCursor) as conn:
        conn.adapters.register_loader("text", Shouting)
        conn.adapters.register_loader("int8", Shouting)
        set_json_loads(lambda text: "loaded by the caller", conn)
        set_json_dumps(lambda value: json.dumps("dumped by the caller"), conn)
        sent = mq.send("billing", {"order": 42}, conn=conn)
        assert type(sent) is int
        (peeked,) = mq.peek("billing", conn=conn)
        assert (peeked.id, peeked.channel, peeked.payload) == (sent, "billing", {"order": 42})
        assert mq.send_many([menzil.Send("billing", 1)], conn=conn) == [sent + 1]

        assert conn.row_factory is dict_row
        assert conn.cursor_factory is psycopg.ClientCursor
        assert not conn.autocommit
        assert conn.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS, "and not committed"
        row = conn.execute("select 'a'::text as name, '{}'::jsonb as body").fetchone()
        assert row == {"name": "A", "body": "loaded by the caller"}
        conn.rollback()
    assert waiting(mq) == []


def test_autocommit_of_the_caller_is_left_alone(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        mq.send("billing", 1, conn=conn)
        assert conn.autocommit
        assert waiting(mq) == [1]


def test_sending_works_inside_a_pipeline(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db) as conn, conn.pipeline():
        conn.execute("select 1")
        mq.send("billing", 1, conn=conn)
    assert waiting(mq) == [1]


def test_a_connection_menzil_cannot_use_is_refused_with_a_hint(mq: menzil.Menzil, db: str) -> None:
    fake = type("connection", (), {"__module__": "pg8000.legacy"})()
    with pytest.raises(menzil.UsageError, match="give the SQLAlchemy connection around it"):
        mq.send("billing", 1, conn=fake)
    with pytest.raises(menzil.UsageError, match="SQLAlchemy Session"):
        mq.send("billing", 1, conn=db)  # type: ignore[arg-type]
    with psycopg.connect(db) as conn, pytest.raises(menzil.UsageError, match="cursor"):
        mq.send("billing", 1, conn=conn.cursor())  # type: ignore[arg-type]
    assert waiting(mq) == []


def test_sync_and_async_are_not_mixed(mq: menzil.Menzil, db: str) -> None:
    async def mix() -> None:
        async with await psycopg.AsyncConnection.connect(db) as conn:
            with pytest.raises(menzil.UsageError, match="AsyncMenzil"):
                mq.send("billing", 1, conn=conn)  # type: ignore[arg-type]
        with psycopg.connect(db) as sync:
            async with menzil.AsyncMenzil(db) as awaited:
                with pytest.raises(menzil.UsageError, match="not async"):
                    await awaited.send("billing", 1, conn=sync)  # type: ignore[arg-type]

    asyncio.run(mix())


# --- SQLAlchemy -------------------------------------------------------------------------------------------------------


def sqlalchemy_url(db: str) -> Any:
    parts = conninfo_to_dict(db)
    return sqlalchemy.URL.create(
        "postgresql+psycopg",
        username=str(parts["user"]),
        password=str(parts["password"]) if "password" in parts else None,
        host=str(parts["host"]),
        port=int(str(parts["port"])),
        database=str(parts["dbname"]),
    )


def test_a_sqlalchemy_session_takes_the_message_with_it(mq: menzil.Menzil, db: str) -> None:
    engine = sqlalchemy.create_engine(sqlalchemy_url(db))
    with orm.Session(engine) as session:
        mq.send("billing", "rolled back", conn=session)
        session.rollback()
        mq.send("billing", "committed", conn=session)
        assert waiting(mq) == []
        session.commit()
        with session.begin():
            session.execute(sqlalchemy.text("select 1"))
            with session.begin_nested() as savepoint:
                mq.send("billing", "savepoint", conn=session)
                savepoint.rollback()
            mq.send("billing", "in begin", conn=session)
    scoped = orm.scoped_session(orm.sessionmaker(engine))
    mq.send("billing", "scoped", conn=scoped)
    scoped.commit()
    scoped.remove()
    assert waiting(mq) == ["committed", "in begin", "scoped"]
    engine.dispose()


def test_a_sqlalchemy_connection_knows_that_there_is_something_to_commit(mq: menzil.Menzil, db: str) -> None:
    engine = sqlalchemy.create_engine(sqlalchemy_url(db))
    with engine.connect() as conn:
        mq.send("billing", "rolled back", conn=conn)
        conn.rollback()
        mq.send("billing", "committed", conn=conn)
        conn.commit()
        mq.send("billing", "forgotten", conn=conn)
    with engine.begin() as conn:
        mq.send("billing", "in begin", conn=conn)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        mq.send("billing", "autocommit", conn=conn)
    assert waiting(mq) == ["committed", "in begin", "autocommit"]
    with pytest.raises(menzil.UsageError, match="Engine"):
        mq.send("billing", 1, conn=engine)  # type: ignore[arg-type]
    engine.dispose()


def test_a_sqlalchemy_connection_to_another_database_is_refused(mq: menzil.Menzil) -> None:
    with (
        sqlalchemy.create_engine("sqlite://").connect() as conn,
        pytest.raises(menzil.UsageError, match="to sqlite, not"),
    ):
        mq.send("billing", 1, conn=conn)


def test_async_sqlalchemy_takes_the_message_with_it(mq: menzil.Menzil, db: str) -> None:
    async def send() -> None:
        engine = create_async_engine(sqlalchemy_url(db))
        async with menzil.AsyncMenzil(db) as awaited:
            async with AsyncSession(engine) as session:
                await awaited.send("billing", "rolled back", conn=session)
                await session.rollback()
                await awaited.send("billing", "session", conn=session)
                await session.commit()
                with pytest.raises(menzil.UsageError, match="AsyncMenzil"):
                    mq.send("billing", 1, conn=session)
            scoped = async_scoped_session(async_sessionmaker(engine), asyncio.current_task)
            await awaited.send("billing", "scoped", conn=scoped)
            await scoped.commit()
            await scoped.remove()
            async with engine.connect() as conn:
                await awaited.send("billing", "rolled back", conn=conn)
                await conn.rollback()
                await awaited.send("billing", "connection", conn=conn)
                await conn.commit()
                with pytest.raises(menzil.UsageError, match="AsyncMenzil"):
                    mq.send("billing", 1, conn=conn)
            async with engine.begin() as conn:
                await awaited.send("billing", "begin", conn=conn)
        await engine.dispose()

    asyncio.run(send())
    assert waiting(mq) == ["session", "scoped", "connection", "begin"]


# --- Django -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def django_connection(db: str) -> Iterator[Any]:
    parts = conninfo_to_dict(db)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts["user"],
        "PASSWORD": parts.get("password", ""),
        "HOST": parts["host"],
        "PORT": parts["port"],
    }
    if not settings.configured:
        settings.configure(DATABASES={"default": {}}, USE_TZ=True)
    connections.settings["shop"] = connections.configure_settings({"default": {}, "shop": database})["shop"]
    yield ConnectionProxy(connections, "shop")  # what django.db.connection is, for another alias
    connections["shop"].close()
    del connections["shop"]
    del connections.settings["shop"]


@pytest.mark.filterwarnings("ignore:Accessing the database during app initialization")
def test_djangos_connection_takes_the_message_with_it(mq: menzil.Menzil, django_connection: Any) -> None:
    mq.send("billing", "autocommit", conn=django_connection)
    with transaction.atomic(using="shop"):
        mq.send("billing", "atomic", conn=django_connection)
        assert waiting(mq) == ["autocommit"]
        with django_connection.cursor() as cursor:
            cursor.execute("select '{\"a\": 1}'::jsonb")
            assert cursor.fetchone() == ('{"a": 1}',), "Django still reads jsonb its own way"
    with transaction.atomic(using="shop"):
        mq.send("billing", "rolled back", conn=django_connection)
        transaction.set_rollback(True, using="shop")
    assert waiting(mq) == ["autocommit", "atomic"]
    (message, _) = mq.peek("billing", conn=django_connection)
    assert message.payload == "autocommit"


def test_a_broken_atomic_block_is_refused_as_django_does(mq: menzil.Menzil, django_connection: Any) -> None:
    with transaction.atomic(using="shop"):
        transaction.set_rollback(True, using="shop")
        with pytest.raises(transaction.TransactionManagementError):
            mq.send("billing", 1, conn=django_connection)


def test_a_django_database_that_is_not_postgresql_is_refused(mq: menzil.Menzil) -> None:
    with pytest.raises(menzil.UsageError, match="sqlite"):
        mq.send("billing", 1, conn=SqliteWrapper({"NAME": ":memory:", "OPTIONS": {}}, "other"))
