"""AsyncMenzil: the same, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import psycopg
import pytest

import menzil
from menzil.ops import sending


def awaited(db: str, story: Callable[[menzil.AsyncMenzil], Awaitable[None]]) -> None:
    async def tell() -> None:
        async with menzil.AsyncMenzil(db) as mq:
            await mq.channel_set("billing")
            await story(mq)

    asyncio.run(tell())


def test_a_message_is_part_of_the_business_transaction(db: str) -> None:
    async def story(mq: menzil.AsyncMenzil) -> None:
        async with await psycopg.AsyncConnection.connect(db) as conn:
            await conn.execute("create table orders (id int primary key)")
            await mq.send("billing", {"order": 41}, conn=conn)
            await conn.rollback()
            await conn.execute("create table orders (id int primary key)")
            sent = await mq.send("billing", {"order": 42}, idempotency_key="order-42", conn=conn)
            assert await mq.dequeue() == []
        (message,) = await mq.dequeue(limit=100, lease=30)
        assert (message.id, message.payload) == (sent, {"order": 42})
        await mq.complete(message)
        assert (await mq.status(sent)).status == "completed"

    awaited(db, story)


def test_the_whole_life_of_a_batch(db: str) -> None:
    async def story(mq: menzil.AsyncMenzil) -> None:
        await mq.send_batch("billing", range(4))
        done, later, bad, slow = await mq.dequeue(4)
        assert [answer.ok for answer in await mq.complete_many([done])] == [True]
        assert [answer.ok for answer in await mq.defer_many([(later, menzil.Defer(seconds=60, state=b"s"))])] == [True]
        failed = await mq.fail_many([(bad, menzil.Fail("no", retry=False))])
        assert [answer.outcome for answer in failed] == [menzil.Settlement.DEAD]
        assert [answer.ok for answer in await mq.heartbeat_many([slow], 60)] == [True]
        await mq.heartbeat(slow, 60)
        await mq.defer(slow)
        (slow,) = await mq.dequeue()
        assert await mq.fail(slow, "no") is menzil.Settlement.RETRY
        assert await mq.retry_now(slow.id)
        with pytest.raises(menzil.LeaseError):
            await mq.complete(done)
        with pytest.raises(menzil.UnknownNameError):
            await mq.send("nowhere", 1)

    awaited(db, story)


def test_everything_else_answers(db: str) -> None:
    async def story(mq: menzil.AsyncMenzil) -> None:
        await mq.channel_pause("billing")
        await mq.channel_resume("billing")
        sent = await mq.send("billing", b"raw", delay=60)
        assert await mq.cancel(sent)
        await mq.send("billing", 1)
        assert [message.payload for message in await mq.peek("billing")] == [1]
        assert await mq.channel_purge("billing") == 1
        config = {"url": "https://example.com/hook"}
        assert await mq.validate_endpoint_config("http", config)
        await mq.create_endpoint("hook", "http", config)
        await mq.alter_endpoint("hook", config)
        await mq.set_retry_policy("hook", {"max_retries": 1})
        await mq.disable_endpoint("hook")
        await mq.enable_endpoint("hook")
        assert await mq.purge_endpoint("hook") == 0
        await mq.drop_endpoint("hook")
        await mq.schedule_create("nightly", "0 3 * * *", "billing", 1)
        await mq.schedule_pause("nightly")
        await mq.schedule_resume("nightly")
        assert await mq.schedule_fire_due() == 0
        await mq.schedule_drop("nightly")
        assert (await mq.cron_next("0 3 * * *", "UTC", datetime(2026, 1, 1, tzinfo=UTC))).hour == 3
        await mq.set_setting("max_payload_size", 2048)
        assert await mq.setting("max_payload_size") == "2048"
        assert await mq.mark_expired() == await mq.recover_stale() == 0
        assert await mq.maintain_archive_partitions() >= 0
        await mq.maintain()
        await mq.channel_release("billing")
        async with await psycopg.AsyncConnection.connect(db) as conn:
            await mq.enable_fast_mode(conn)

    awaited(db, story)


def test_a_long_send_many_is_all_or_nothing(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "CHUNK", 3)

    async def story(mq: menzil.AsyncMenzil) -> None:
        good = [menzil.Send("billing", number) for number in range(7)]
        with pytest.raises(menzil.UnknownNameError):
            await mq.send_many([*good, menzil.Send("nowhere", 1)])
        assert await mq.send_many([]) == []
        async with await psycopg.AsyncConnection.connect(db, autocommit=True) as conn:
            with pytest.raises(menzil.UnknownNameError):
                await mq.send_many([*good, menzil.Send("nowhere", 1)], conn=conn)
            await mq.send_many(good, conn=conn)
        await mq.send_many(good)
        assert sorted(message.payload for message in await mq.dequeue(100)) == sorted([*range(7), *range(7)])

    awaited(db, story)


def test_many_tasks_share_few_connections(db: str) -> None:
    async def story(mq: menzil.AsyncMenzil) -> None:
        await asyncio.gather(*(mq.send("billing", number) for number in range(50)))
        assert len(await mq.dequeue(100)) == 50

    awaited(db, story)


def test_the_first_calls_may_come_all_at_once(db: str) -> None:
    async def story() -> None:
        async with menzil.AsyncMenzil(db) as mq:
            await asyncio.gather(*(mq.channel_set(f"c{number}") for number in range(10)))

    asyncio.run(story())


def test_a_client_belongs_to_one_event_loop_and_one_life(db: str) -> None:
    mq = menzil.AsyncMenzil(db)

    async def use() -> None:
        await mq.channel_set("billing")

    async def close() -> None:
        await use()
        await mq.close()
        with pytest.raises(menzil.UsageError, match="closed"):
            await use()

    async def open_elsewhere() -> None:
        await mq.channel_set("billing")
        await asyncio.to_thread(lambda: asyncio.run(refused()))
        await close()

    async def refused() -> None:
        with pytest.raises(menzil.UsageError, match="another event loop"):
            await use()

    asyncio.run(open_elsewhere())


def test_a_database_that_does_not_fit_says_so(fresh_db: str) -> None:
    async def story() -> None:
        async with menzil.AsyncMenzil(fresh_db) as mq:
            with pytest.raises(menzil.SchemaMissingError):
                await mq.send("billing", 1)
        async with menzil.AsyncMenzil("postgresql://127.0.0.1:1/shop") as nowhere:
            with pytest.raises(menzil.ConnectionFailedError):
                await nowhere.send("billing", 1)

    asyncio.run(story())


def test_a_loop_completes_each_batch_when_it_takes_the_next(db: str) -> None:
    async def story(mq: menzil.AsyncMenzil) -> None:
        sent = await mq.send_batch("billing", list(range(25)))
        taken: list[int] = []
        batch, late = await mq.next(limit=10)
        while batch:
            taken += [message.id for message in batch]
            batch, late = await mq.next(batch, 10)
            assert late == []
        assert taken == sent
        assert {(await mq.status(id)).status for id in sent} == {"completed"}

    awaited(db, story)
