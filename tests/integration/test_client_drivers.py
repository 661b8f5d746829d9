"""Sending, consuming and the inbox on connections of other drivers: psycopg2, asyncpg, and SQLAlchemy over both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from uuid import UUID

import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy
from psycopg.conninfo import conninfo_to_dict
from psycopg2 import extras
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

import menzil
from menzil.embedded import Embedded
from tests.conftest import database

UUID_TEXT = "6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11"
OPTIONS: dict[str, Any] = {
    "priority": 3,
    "ordering_key": "ada's \\ %s $1",
    "idempotency_key": "größer 日本",
    "correlation_id": UUID_TEXT,
    "headers": {"x": "100 % \\u"},
    "metadata": {"precise": 12345678901234567890},
    "expires_in": 600,
}


@pytest.fixture(scope="module")
def shared(server: Embedded, _installed: str) -> Iterator[str]:
    with database(server, "drivers", _installed) as dsn:
        yield dsn


@pytest.fixture
def mq(shared: str) -> Iterator[menzil.Menzil]:
    with menzil.Menzil(shared) as client:
        client.channel_set("billing")
        client.channel_purge("billing")
        yield client


@pytest.fixture
def url(shared: str) -> Callable[[str], sqlalchemy.URL]:
    at = conninfo_to_dict(shared)

    def of(driver: str) -> sqlalchemy.URL:
        return sqlalchemy.URL.create(
            f"postgresql+{driver}", str(at["user"]), str(at["password"]), str(at["host"]), int(str(at["port"])),
            str(at["dbname"]),
        )  # fmt: skip

    return of


@pytest.fixture
def plain(url: Callable[[str], sqlalchemy.URL]) -> str:
    return url("x").render_as_string(hide_password=False).replace("+x", "")


def waiting(mq: menzil.Menzil) -> list[Any]:
    return [message.body for message in mq.peek("billing", 100)]


def check_everything(mq: menzil.Menzil, conn: Any) -> None:
    """What travels through this connection is what travels through our own."""
    body = {"text": "größer 日本 \\ ' %s $1", "number": 1.5, "none": None}
    sent = mq.send("billing", body, conn=conn, **OPTIONS)
    assert type(sent) is int
    raw = mq.send("billing", b"\x00\xff%s", conn=conn)
    assert mq.send_batch("billing", [1, 2], conn=conn) == [raw + 1, raw + 2]
    many = [menzil.Send("billing", n, idempotency_key=f"many {n}") for n in range(3)]
    assert len(mq.send_many(many, conn=conn)) == 3
    (first, *_) = mq.dequeue(limit=10, conn=conn, channels="billing")
    assert (first.id, first.payload, first.channel, first.attempt) == (sent, body, "billing", 1)
    assert (first.correlation_id, first.ordering_key) == (UUID(UUID_TEXT), OPTIONS["ordering_key"])
    assert (first.headers, first.metadata) == (OPTIONS["headers"], OPTIONS["metadata"])
    assert first.expires_at is not None
    assert (first.expires_at - first.created_at).total_seconds() == pytest.approx(600, abs=60)
    assert menzil.inbox(conn, first, consumer="ledger") is True
    assert menzil.inbox(conn, first, consumer="ledger") is False
    mq.defer(first, state=b"\x00half", conn=conn)
    assert mq.status(sent, conn=conn).status == "pending"


def test_psycopg2_takes_the_message_with_it(mq: menzil.Menzil, plain: str) -> None:
    conn = psycopg2.connect(plain, cursor_factory=extras.RealDictCursor)
    extras.register_default_jsonb(conn, globally=False, loads=lambda text: "read by the caller")
    mq.send("billing", "rolled back", conn=conn)
    conn.rollback()
    mq.send("billing", "committed", conn=conn)
    assert waiting(mq) == []
    conn.commit()
    assert waiting(mq) == ["committed"]
    mq.channel_purge("billing")
    conn.autocommit = True
    check_everything(mq, conn)
    with conn.cursor() as cursor:  # and the caller's cursors are what they were
        cursor.execute("select '{}'::jsonb as body")
        assert cursor.fetchall() == [{"body": "read by the caller"}]
    conn.close()


def test_several_statements_in_autocommit_are_all_or_none(
    mq: menzil.Menzil, plain: str, url: Callable[[str], sqlalchemy.URL]
) -> None:
    wrong = [{"channel": "billing", "payload": n} for n in range(10_000)] + [{"channel": "nowhere", "payload": 1}]

    async def awaited() -> None:
        conn = await asyncpg.connect(plain)
        async with menzil.AsyncMenzil(plain) as client:
            with pytest.raises(menzil.UnknownNameError):
                await client.send_many(wrong, conn=conn)
            lone = create_async_engine(url("asyncpg"), isolation_level="AUTOCOMMIT")
            async with lone.connect() as over:
                with pytest.raises(menzil.UnknownNameError):
                    await client.send_many(wrong, conn=over)
            await lone.dispose()
        await conn.close()

    conn = psycopg2.connect(plain)
    conn.autocommit = True
    with pytest.raises(menzil.UnknownNameError):
        mq.send_many(wrong, conn=conn)
    engine = sqlalchemy.create_engine(url("psycopg2"), isolation_level="AUTOCOMMIT")
    with engine.connect() as over, pytest.raises(menzil.UnknownNameError):
        mq.send_many(wrong, conn=over)
    asyncio.run(awaited())
    assert waiting(mq) == []
    conn.close()
    engine.dispose()


def test_a_sqlalchemy_session_over_psycopg2_takes_the_message_with_it(
    mq: menzil.Menzil, url: Callable[[str], sqlalchemy.URL]
) -> None:
    engine = sqlalchemy.create_engine(url("psycopg2"))
    with orm.Session(engine) as session:
        mq.send("billing", "rolled back", conn=session)
        session.rollback()
        mq.send("billing", "committed", conn=session)
        assert waiting(mq) == []
        session.commit()
        assert waiting(mq) == ["committed"]
        with session.begin_nested() as savepoint:
            mq.send("billing", "savepoint", conn=session)
            savepoint.rollback()
        session.commit()
    assert waiting(mq) == ["committed"]
    mq.channel_purge("billing")
    with engine.connect() as conn:
        check_everything(mq, conn)
        conn.rollback()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        mq.send("billing", "autocommit", conn=conn)
    assert waiting(mq) == ["autocommit"]
    engine.dispose()


def run_awaited(plain: str, what: Callable[[menzil.AsyncMenzil], Awaitable[None]]) -> None:
    async def main() -> None:
        async with menzil.AsyncMenzil(plain) as client:
            await what(client)

    asyncio.run(main())


async def check_awaited(client: menzil.AsyncMenzil, conn: Any) -> None:
    body = {"text": "größer 日本 \\ ' %s $1", "number": 1.5}
    sent = await client.send("billing", body, conn=conn, **OPTIONS)
    raw = await client.send("billing", b"\x00\xff", conn=conn)
    assert type(sent) is int
    assert await client.send_many([menzil.Send("billing", n) for n in range(2)], conn=conn) == [raw + 1, raw + 2]
    (first, second, *_) = await client.dequeue(limit=10, conn=conn, channels="billing")
    assert (first.id, first.payload, first.correlation_id) == (sent, body, UUID(UUID_TEXT))
    assert (first.headers, first.metadata) == (OPTIONS["headers"], OPTIONS["metadata"])
    assert second.content == b"\x00\xff"
    assert await menzil.inbox(conn, first, consumer="ledger") is True
    assert await menzil.inbox(conn, first, consumer="ledger") is False
    await client.complete(first, conn=conn)


def test_a_bare_asyncpg_connection_takes_the_message_with_it(mq: menzil.Menzil, plain: str) -> None:
    async def work(client: menzil.AsyncMenzil) -> None:
        conn = await asyncpg.connect(plain)
        # What half of all projects with asyncpg do: JSON in, JSON out.
        for kind in ("json", "jsonb"):
            await conn.set_type_codec(kind, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        undone = conn.transaction()
        await undone.start()
        await check_awaited(client, conn)
        await undone.rollback()
        assert waiting(mq) == []
        async with conn.transaction():
            await client.send("billing", {"in": "transaction"}, conn=conn)
            assert waiting(mq) == []
        assert waiting(mq) == [{"in": "transaction"}]
        async with asyncpg.create_pool(plain, min_size=1, max_size=1) as pool, pool.acquire() as lent:
            await client.send("billing", {"from": "pool"}, conn=lent)
            with pytest.raises(menzil.UsageError, match="pool"):
                await client.send("billing", 1, conn=pool)
        with pytest.raises(menzil.UsageError, match="AsyncMenzil"):
            mq.send("billing", 1, conn=conn)
        await conn.close()

    run_awaited(plain, work)
    assert waiting(mq) == [{"in": "transaction"}, {"from": "pool"}]


def test_a_sqlalchemy_session_over_asyncpg_takes_the_message_with_it(
    mq: menzil.Menzil, plain: str, url: Callable[[str], sqlalchemy.URL]
) -> None:
    async def work(client: menzil.AsyncMenzil) -> None:
        engine = create_async_engine(url("asyncpg"))
        async with AsyncSession(engine) as session:
            # The very first statement of the session is the send: the driver has not begun its transaction yet.
            await client.send("billing", "rolled back", conn=session)
            await session.rollback()
            assert waiting(mq) == []
            await client.send("billing", "committed", conn=session)
            assert waiting(mq) == []
            await session.commit()
            await session.run_sync(lambda inner: mq.send("billing", "from an event of the session", conn=inner))
            await session.commit()
        assert waiting(mq) == ["committed", "from an event of the session"]
        mq.channel_purge("billing")
        async with engine.connect() as conn:
            await check_awaited(client, conn)
            await conn.rollback()
        async with engine.connect() as conn:
            await conn.execution_options(isolation_level="AUTOCOMMIT")
            await client.send("billing", "autocommit", conn=conn)
        await engine.dispose()

    run_awaited(plain, work)
    assert waiting(mq) == ["autocommit"]


def test_each_driver_refuses_with_the_class_and_hint_of_menzil(
    mq: menzil.Menzil, plain: str, url: Callable[[str], sqlalchemy.URL]
) -> None:
    def sentences(failed: menzil.MenzilError) -> tuple[Any, ...]:
        return type(failed), failed.message, failed.hint, failed.sqlstate

    with pytest.raises(menzil.UnknownNameError) as ours:
        mq.send("biling", 1)
    told = sentences(ours.value)

    async def awaited(client: menzil.AsyncMenzil) -> None:
        conn = await asyncpg.connect(plain)
        with pytest.raises(menzil.UnknownNameError) as refused:
            await client.send("biling", 1, conn=conn)
        assert sentences(refused.value) == told
        await conn.close()
        engine = create_async_engine(url("asyncpg"))
        async with engine.connect() as over:
            with pytest.raises(menzil.UnknownNameError) as refused:
                await client.send("biling", 1, conn=over)
        assert sentences(refused.value) == told
        await engine.dispose()

    conn = psycopg2.connect(plain)
    engine = sqlalchemy.create_engine(url("psycopg2"))
    with pytest.raises(menzil.UnknownNameError) as refused:
        mq.send("biling", 1, conn=conn)
    assert sentences(refused.value) == told
    conn.rollback()
    with engine.connect() as over, pytest.raises(menzil.UnknownNameError) as refused:
        mq.send("biling", 1, conn=over)
    assert sentences(refused.value) == told
    run_awaited(plain, awaited)
    conn.close()
    engine.dispose()


_ODD = {"bytea_output": "escape", "timezone": "Asia/Kolkata", "datestyle": "German", "search_path": ""}


def test_settings_of_the_session_do_not_change_what_is_read(mq: menzil.Menzil, plain: str) -> None:
    conn = psycopg2.connect(plain)
    with conn.cursor() as cursor:
        for setting, value in _ODD.items():
            cursor.execute(f"set {setting} = '{value}'")
    sent = mq.send("billing", b"\\\x00'", conn=conn)
    (found,) = mq.dequeue(conn=conn, channels="billing")
    assert (found.id, found.content) == (sent, b"\\\x00'")
    with psycopg.connect(plain) as other:
        (now,) = other.execute("select now()").fetchone() or ()
    assert abs((found.created_at - now).total_seconds()) < 60
    conn.rollback()
    conn.close()


def test_a_psycopg2_connection_of_another_encoding_is_refused_before_anything_runs(
    mq: menzil.Menzil, plain: str
) -> None:
    conn = psycopg2.connect(plain)
    conn.set_client_encoding("LATIN1")
    with pytest.raises(menzil.UsageError, match="LATIN1"):
        mq.dequeue(conn=conn)
    conn.close()
