"""Behind a pooler in transaction mode that loses prepared statements: it is noticed once, and everything goes on."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import menzil
from menzil.ops.preparing import outdated
from tests.acceptance.pooler import PGBOUNCER, pooler
from tests.settings.old_pooler import old_pooler

TOLD = "The server lost a prepared statement"


class Pooled(NamedTuple):
    dsn: str
    most: tuple[int, ...]  # how often a client may say that it prepares no more: a newer PgBouncer loses nothing


@pytest.fixture(
    params=[
        "ours",
        "serializable",
        pytest.param("pgbouncer", marks=pytest.mark.skipif(PGBOUNCER is None, reason="no pgbouncer")),
    ]
)
def pooled(db: str, request: pytest.FixtureRequest) -> Iterator[Pooled]:
    """A database with the channel billing, behind the pooler."""
    with menzil.Menzil(db) as mq:
        mq.channel_set("billing")
    ours = request.param != "pgbouncer"
    if request.param == "serializable":  # then every call is a transaction of its own, and may be lost in its middle
        db = make_conninfo(db, options="-c default_transaction_isolation=serializable")
    with old_pooler(db) if ours else pooler(db) as dsn:
        yield Pooled(dsn, (1,) if ours else (0, 1))


def told(caplog: pytest.LogCaptureFixture) -> int:
    return sum(TOLD in record.getMessage() for record in caplog.records)


def test_the_pooler_of_these_tests_loses_prepared_statements(db: str) -> None:
    with (
        old_pooler(db) as dsn,
        psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as conn,
        pytest.raises(psycopg.errors.InvalidSqlStatementName),
    ):
        conn.execute("select 1")


def test_a_client_goes_on_without_prepared_statements(pooled: Pooled, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), menzil.Menzil(pooled.dsn) as mq:
        for number in range(40):
            mq.send("billing", number)
        got = []
        while batch := mq.dequeue(limit=3):
            got += [message.payload for message in batch]
            mq.send_many([menzil.Send("billing", number) for number in range(100, 103) if len(got) < 40])
            assert all(answer.ok for answer in mq.complete_many(batch))
        assert Counter(number for number in got if number < 100) == Counter(range(40))
    assert told(caplog) in pooled.most


def test_an_async_client_goes_on_without_prepared_statements(pooled: Pooled, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with menzil.AsyncMenzil(pooled.dsn) as mq:
            for _ in range(5):
                await asyncio.gather(*(mq.send("billing", number) for number in range(8)))
            done = 0
            while batch := await mq.dequeue(limit=2):
                done += len(batch)
                assert all(answer.ok for answer in await mq.complete_many(batch))
            assert done == 40

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    assert told(caplog) in pooled.most


def test_a_worker_says_it_once_and_delivers_everything_once(
    db: str, pooled: Pooled, caplog: pytest.LogCaptureFixture
) -> None:
    handled: Counter[int] = Counter()
    app = menzil.Worker(pooled.dsn, endpoints=False, concurrency=4, batch=2)

    @app.handler("billing")
    async def bill(message: menzil.Message) -> menzil.Outcome | None:
        handled[message.id] += 1
        return menzil.Fail("again", retry=0) if message.attempt == 1 and message.payload % 5 == 0 else None

    @app.handler("ledger", transaction=True, concurrency=3)
    async def write(message: menzil.Message, conn: psycopg.AsyncConnection[Any]) -> None:
        await conn.execute("insert into effect values (%s)", (message.id,))

    @app.handler("threaded", transaction=True, concurrency=3)
    def write_in_a_thread(message: menzil.Message, conn: psycopg.Connection[Any]) -> None:
        conn.execute("insert into effect values (%s)", (message.id,))

    with menzil.Menzil(db) as mq, psycopg.connect(db, autocommit=True) as conn:
        conn.execute("create table effect (id bigint)")
        ids = {}
        for channel in ("billing", "ledger", "threaded"):
            mq.channel_set(channel)
            ids[channel] = mq.send_batch(channel, list(range(40)))
        with caplog.at_level(logging.INFO, "menzil.worker"):
            tally = asyncio.run(asyncio.wait_for(app.serve(once=True), 50))
        assert tally.delivered == 120
        assert handled == Counter({id: 2 if place % 5 == 0 else 1 for place, id in enumerate(ids["billing"])})
        written = Counter(id for (id,) in conn.execute("select id from effect"))
        assert written == Counter(ids["ledger"] + ids["threaded"])
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [line for line in said if not line.startswith("failed channel=billing ")] == [
        line for line in said if line.startswith("prepared_statements_off ")
    ]
    assert sum(line.startswith("prepared_statements_off ") for line in said) in pooled.most


@pytest.mark.parametrize("forget", ["deallocate all", "discard all"])
def test_a_client_survives_a_server_that_forgets_its_statements(
    db: str, forget: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), menzil.Menzil(db, max_connections=1) as mq:
        mq.channel_set("billing")
        for number in range(10):
            mq.send("billing", number)
        pool = mq._own_pool()
        own = pool.take()
        own.execute(forget)
        pool.give_back(own)
        assert isinstance(mq.send("billing", 10), int)
        assert len(mq.dequeue(limit=20)) == 11
    assert told(caplog) == 1


def test_only_a_statement_that_is_older_than_its_table_is_called_outdated(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn, psycopg.connect(db, autocommit=True) as other:
        conn.execute("create table shop (id int)")
        conn.execute("select * from shop", prepare=True)
        other.execute("alter table shop add column name text")
        with pytest.raises(psycopg.errors.FeatureNotSupported) as raised:
            conn.execute("select * from shop", prepare=True)
        assert outdated(raised.value)
        with pytest.raises(psycopg.errors.FeatureNotSupported) as raised:
            conn.execute("do $$ begin raise feature_not_supported; end $$")
        assert not outdated(raised.value)


def test_a_connection_of_the_caller_that_lost_its_statements_is_named(db: str) -> None:
    with menzil.Menzil(db) as mq, psycopg.connect(db, autocommit=True) as conn:
        mq.channel_set("billing")
        for number in range(10):
            mq.send("billing", number, conn=conn)
        conn.pgconn.exec_(b"deallocate all")  # psycopg would notice its own
        with pytest.raises(menzil.UsageError, match="lost a statement") as raised:
            mq.send("billing", 10, conn=conn)
        assert "prepare_threshold=None" in str(raised.value)


def test_two_connections_never_share_the_name_of_a_statement(db: str) -> None:
    async def names() -> set[str]:
        async with menzil.AsyncMenzil(db, max_connections=1) as mq:
            for number in range(10):
                await mq.send("billing", number)
            async with (await mq._own_pool()).connection() as own:
                rows = await (await own.execute("select name from pg_prepared_statements")).fetchall()
                return {str(name) for (name,) in rows}

    with menzil.Menzil(db) as mq:
        mq.channel_set("billing")
    first, second = asyncio.run(names()), asyncio.run(names())
    assert first
    assert second
    assert not first & second
