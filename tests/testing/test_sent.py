"""assert_sent, refute_sent and all_sent: what they see, what they call alike, and what they say when they fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import ANY
from uuid import uuid4

import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy
from django.db import transaction
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

import menzil
from menzil.model.errors import UsageError
from menzil.testing import aio, all_sent, assert_sent, refute_sent
from menzil.testing.here import use
from tests.acceptance.test_orms import url
from tests.integration.test_client_connections import django_connection

__all__ = ["django_connection"]  # a fixture of another file


@pytest.fixture
def channel(client: menzil.Menzil, request: pytest.FixtureRequest) -> str:
    """A channel that no other test sends to."""
    name = f"c-{uuid4().hex[:8]}"
    client.channel_set(name)
    return name


def failure(call: Callable[..., Any], *args: Any, **words: Any) -> list[str]:
    with pytest.raises(AssertionError) as raised:
        call(*args, **words)
    return str(raised.value).splitlines()


@pytest.mark.parametrize("kind", ["psycopg", "psycopg2", "Session of psycopg", "Session of psycopg2"])
def test_an_open_transaction_is_seen_through_its_connection_only(
    client: menzil.Menzil, channel: str, shared: str, kind: str
) -> None:
    engine = sqlalchemy.create_engine(url(shared, kind.rpartition(" ")[2]))
    makers: dict[str, Callable[[], Any]] = {
        "psycopg": lambda: psycopg.connect(shared),
        "psycopg2": lambda: psycopg2.connect(shared),
    }
    conn = makers.get(kind, lambda: orm.Session(engine))()
    try:
        client.send(channel, {"order": 42}, conn=conn)
        assert assert_sent(channel, {"order": 42}, conn=conn).status == "pending"
        refute_sent(channel)
        assert len(all_sent(channel, conn=conn)) == 1
        conn.rollback()
        refute_sent(channel, conn=conn)
    finally:
        conn.close()
        engine.dispose()


def test_djangos_connection_shows_its_open_transaction(db: str, django_connection: Any) -> None:
    with use(db), menzil.Menzil(db) as mq:
        mq.channel_set("billing")
        with transaction.atomic(using="shop"):
            mq.send("billing", {"order": 42}, conn=django_connection)
            assert_sent("billing", {"order": 42}, conn=django_connection)
            refute_sent("billing")


def test_async_connections_are_asked_by_the_awaited_twins(client: menzil.Menzil, channel: str, shared: str) -> None:
    async def through(conn: Any) -> None:
        async with menzil.AsyncMenzil(shared) as amq:
            await amq.send(channel, {"order": 42}, conn=conn)
        await aio.assert_sent(channel, {"order": 42}, conn=conn, count=1)
        assert len(await aio.all_sent(channel, conn=conn)) == 1
        await aio.refute_sent(channel)
        with pytest.raises(UsageError, match=r"menzil\.testing\.aio"):
            assert_sent(channel, conn=conn)

    async def every_kind() -> None:
        async with await psycopg.AsyncConnection.connect(shared) as conn:
            await through(conn)
            await conn.rollback()
        bare = await asyncpg.connect(str(url(shared, "asyncpg").set(drivername="postgresql").render_as_string(False)))
        begun = bare.transaction()
        await begun.start()
        await through(bare)
        await begun.rollback()
        await bare.close()
        engine = create_async_engine(url(shared, "asyncpg"))
        async with AsyncSession(engine) as session:
            await through(session)
        await engine.dispose()

    asyncio.run(every_kind())


def test_a_message_is_alike_when_it_contains_what_is_asked(client: menzil.Menzil, channel: str) -> None:
    key, at = uuid4(), datetime.now(UTC) + timedelta(hours=1)
    client.send(
        channel,
        {"order": 42, "lines": [{"tea": 2.5}, 3], "paid": True},
        priority=7,
        ordering_key="ada",
        correlation_id=key,
        headers={"x-a": "1", "x-b": "2"},
        scheduled_at=at,
        expires_in=7200,
    )
    assert_sent(channel, {"lines": [{"tea": pytest.approx(2.5)}, ANY]})
    assert_sent(channel, priority=7, ordering_key="ada", correlation_id=str(key), headers={"x-a": "1"})
    assert_sent(channel, scheduled_at=at, delay=3600, expires_in=timedelta(hours=2), attempts=0)
    for wrong in ({"paid": 1}, {"lines": [{"tea": 2.5}]}, {"order": "42"}, {"lines": [{"tea": 2.5, "x": 1}, 3]}, [42]):
        refute_sent(channel, wrong)
    refute_sent(channel, delay=3590)
    refute_sent(channel, headers={"x-a": "2"})


def test_bytes_are_compared_as_bytes(client: menzil.Menzil, channel: str) -> None:
    client.send(channel, b"\x00raw")
    assert assert_sent(channel, b"\x00raw").body == b"\x00raw"
    refute_sent(channel, b"raw")


def test_a_message_that_ended_was_sent_all_the_same(client: menzil.Menzil, channel: str) -> None:
    done, gone = client.send(channel, 1), client.send(channel, 2)
    client.cancel(gone)
    (message,) = client.dequeue(channels=channel)
    client.complete(message)
    assert assert_sent(channel, 1).id == done
    assert_sent(channel, 1, status="completed")
    assert_sent(channel, 2, status="cancelled")
    assert_sent(channel, count=2)


def test_a_failure_names_the_three_nearest_with_their_differences(client: menzil.Menzil, channel: str) -> None:
    for order, who in ((1, "ada"), (2, "bob"), (3, "ada"), (4, "ada")):
        client.send(channel, {"order": order, "to": {"who": who}}, ordering_key=who)
    first = assert_sent(channel).id
    said = failure(assert_sent, channel, {"order": 9, "to": {"who": "bob"}}, ordering_key="bob")
    assert said[0] == f"No message like this was sent to {channel!r}:"
    assert said[2:6] == [
        "The nearest of 4:",
        f"  message {first + 1}, pending: payload.order is 2, not 9",
        f"  message {first + 3}, pending: payload.order is 4, not 9; payload.to.who is 'ada', not 'bob'; "
        "ordering_key is 'ada', not 'bob'",
        f"  message {first + 2}, pending: payload.order is 3, not 9; payload.to.who is 'ada', not 'bob'; "
        "ordering_key is 'ada', not 'bob'",
    ]
    assert "conn=" in said[6]
    assert failure(assert_sent, channel, {"new": 1})[3].endswith("payload.new is missing")
    assert failure(assert_sent, channel, ordering_key="ada", count=2)[0] == (
        f"3 messages were sent to {channel!r} like this, not 2:"
    )
    assert failure(refute_sent, channel, {"order": 2})[2].startswith(f"  message {first + 1}, pending: ")


def test_a_slip_never_passes(client: menzil.Menzil, channel: str, shared: str) -> None:
    assert failure(assert_sent, channel)[0] == f"Nothing was sent to {channel!r}."
    assert failure(refute_sent, channel + "x") == [f"There is no channel {channel + 'x'!r}. Did you mean {channel!r}?"]
    for call in (assert_sent, refute_sent, all_sent):
        with pytest.raises(UsageError, match="no 'order_key'"):
            call(channel, order_key="ada")
    with pytest.raises(UsageError, match="refute_sent"):
        assert_sent(channel, count=0)


def test_within_waits_for_what_another_thread_sends(client: menzil.Menzil, channel: str) -> None:
    looked = threading.Event()

    def later() -> None:
        looked.wait(60)
        client.send(channel, {"late": True})

    sender = threading.Thread(target=later)
    sender.start()
    refute_sent(channel)
    looked.set()
    assert_sent(channel, {"late": True}, within=60)
    sender.join()
    assert failure(refute_sent, channel, within=60)


def test_outside_of_a_test_with_a_database_nothing_is_asked(shared: str) -> None:
    with pytest.raises(UsageError, match="does not know the database") as caught:
        assert_sent("billing")
    assert caught.value.hint == "ask for the fixture mq or menzil_db, or give conn= or dsn="
    assert all_sent(dsn=shared) is not None
