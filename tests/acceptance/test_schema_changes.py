"""Handlers with a transaction whose own tables are altered while a worker runs: no attempt fails for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

import menzil
from tests.acceptance.crew import Crew
from tests.acceptance.test_orms import url

READ = "select * from shop"


def _connection(app: menzil.Worker, alter: Callable[[], None]) -> None:
    @app.handler("work", transaction=True, concurrency=1)
    def work(message: menzil.Message, conn: psycopg.Connection[Any]) -> None:
        alter()
        conn.execute(READ, prepare=True)


def _async_connection(app: menzil.Worker, alter: Callable[[], None]) -> None:
    @app.handler("work", transaction=True, concurrency=1)
    async def work(message: menzil.Message, conn: psycopg.AsyncConnection[Any]) -> None:
        alter()
        await conn.execute(READ, prepare=True)


def _session(app: menzil.Worker, alter: Callable[[], None]) -> None:
    engine = sqlalchemy.create_engine(url(app.dsn or ""), connect_args={"prepare_threshold": 0})

    @app.handler("work", transaction=orm.sessionmaker(engine), concurrency=1)
    def work(message: menzil.Message, session: orm.Session) -> None:
        alter()
        session.execute(sqlalchemy.text(READ))

    app.on_stop(engine.dispose)


def _asyncpg_session(app: menzil.Worker, alter: Callable[[], None]) -> None:
    engine = create_async_engine(url(app.dsn or "", "asyncpg"))

    @app.handler("work", transaction=async_sessionmaker(engine), concurrency=1)
    async def work(message: menzil.Message, session: AsyncSession) -> None:
        alter()
        await session.execute(sqlalchemy.text(READ))

    @app.on_stop
    async def dispose() -> None:
        await engine.dispose()


@pytest.mark.parametrize("write", [_connection, _async_connection, _session, _asyncpg_session])
def test_a_table_that_gets_a_column_costs_a_handler_no_attempt(
    crew: Crew, db: str, write: Callable[[menzil.Worker, Callable[[], None]], None]
) -> None:
    crew.conn.execute("create table shop (id int)")
    app = menzil.Worker(db, endpoints=False, janitors=False)
    calls: list[int] = []

    def alter() -> None:
        calls.append(1)
        if len(calls) == 4:  # the statement is prepared by now
            crew.conn.execute("alter table shop add column name text")

    write(app, alter)
    crew.send("work", *range(6))
    assert app.run(once=True).delivered == 6
    assert len(calls) == 7, "one handler ran again"
    assert crew.ask("select count(*) from menzil.attempts where outcome <> 'completed'") == 0
