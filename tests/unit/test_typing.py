"""The types a caller's checker sees. mypy --strict over this file is the test; running it checks the twins."""

from __future__ import annotations

import inspect
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type
from uuid import UUID

import menzil
from menzil import testing
from menzil.testing import aio

if TYPE_CHECKING:
    import psycopg


def sync_types(mq: menzil.Menzil, conn: psycopg.Connection[dict[str, Any]]) -> None:
    assert_type(mq.send("billing", {"order": 42}, ordering_key="c", conn=conn), int)
    assert_type(mq.send("billing", 1, delay=timedelta(hours=1), expires_in=7200), int)
    assert_type(menzil.inbox(conn, "order-42", consumer="ledger"), bool)
    assert_type(mq.send_batch("billing", [1, 2], priority=3), list[int])
    assert_type(mq.send_many([menzil.Send("billing", 1), {"channel": "billing", "payload": 2}]), list[int])
    for message in mq.dequeue(limit=100, lease=30, channels=["billing"]):
        assert_type(message, menzil.Message)
        assert_type(message.id, int)
        assert_type(message.attempt, int)
        assert_type(message.content, bytes | None)
        assert_type(message.state, bytes | None)
        assert_type(message.headers, dict[str, str] | None)
        assert_type(message.correlation_id, UUID | None)
        assert_type(message.created_at, datetime)
        assert_type(message.expires_at, datetime | None)
        mq.complete(message)
        mq.complete(menzil.Lease(message.id, message.attempt))
        mq.defer(message, delay=1.5, state=b"half")
        mq.heartbeat(message, lease=30)
        mq.heartbeat(message, lease=timedelta(minutes=1))
        assert_type(mq.fail(message, "no", retry_after=5), menzil.Settlement)
    assert_type(mq.complete_many([menzil.Lease(1, 1)]), list[menzil.LeaseOutcome])
    assert_type(mq.fail_many([(menzil.Lease(1, 1), menzil.Fail("no"))])[0].outcome, menzil.Settlement)
    assert_type(mq.status(1), menzil.Status)
    assert_type(mq.status(1).ended_at, datetime | None)
    assert_type(mq.peek("billing"), list[menzil.Message])
    assert_type(mq.cancel(1), bool)
    assert_type(mq.channel_purge("billing"), int)
    assert_type(mq.setting("max_queue_size"), str)
    assert_type(mq.cron_next("* * * * *", "UTC", datetime.now()), datetime)
    assert_type(mq.dsn, str)
    with mq as same:
        assert_type(same, menzil.Menzil)


async def async_types(mq: menzil.AsyncMenzil, conn: psycopg.AsyncConnection[Any]) -> None:
    assert_type(await mq.send("billing", b"raw", delay=3, conn=conn), int)
    assert_type(await mq.send_many([menzil.Send("billing", 1)], conn=conn), list[int])
    assert_type(await mq.dequeue(), list[menzil.Message])
    assert_type(await menzil.inbox(conn, "order-42", consumer="ledger"), bool)
    menzil.Worker(lease=timedelta(minutes=1)).handler("billing", lease=timedelta(minutes=2))
    menzil.Fail("busy", retry=timedelta(minutes=5))
    assert_type(await mq.fail(menzil.Lease(1, 1), "no"), menzil.Settlement)
    assert_type(await mq.defer_many([(menzil.Lease(1, 1), menzil.Defer(state=b"x"))]), list[menzil.LeaseOutcome])
    assert_type(await mq.status(1), menzil.Status)
    async with mq as same:
        assert_type(same, menzil.AsyncMenzil)


def types_of_testing(app: menzil.Worker, conn: psycopg.Connection[Any]) -> None:
    assert_type(testing.assert_sent("billing", {"order": 42}, count=1, conn=conn), testing.Sent)
    assert_type(testing.assert_sent("billing").correlation_id, UUID | None)
    assert_type(testing.all_sent(), list[testing.Sent])
    assert_type(testing.drain(app, hurry=True), testing.Drained)
    assert_type(testing.perform(app, "billing", {"order": 42}, attempt=3), menzil.Outcome)
    assert_type(testing.fire("nightly"), int)


async def async_types_of_testing(app: menzil.Worker, conn: psycopg.AsyncConnection[Any]) -> None:
    assert_type(await aio.assert_sent("billing", within=timedelta(seconds=1), conn=conn), testing.Sent)
    assert_type((await aio.drain(app)).completed, int)


def test_the_types_of_the_api_are_what_this_file_says() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", __file__]
    checked = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def methods(kind: type) -> dict[str, Any]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: method for name, method in found if not name.startswith("_")}


def test_the_async_client_is_the_same_awaited() -> None:
    sync, awaited = methods(menzil.Menzil), methods(menzil.AsyncMenzil)
    # Waiting for an embedded server to start makes a method of what is a property in the sync client.
    assert sync.keys() == awaited.keys() - {"dsn"}
    for name, method in sync.items():
        twin = awaited[name]
        assert inspect.iscoroutinefunction(twin), name
        assert method.__doc__ == twin.__doc__, name
        signature = str(inspect.signature(twin)).replace("AsyncBorrowed", "Borrowed")
        assert str(inspect.signature(method)) == signature, name


def test_every_method_says_what_it_does() -> None:
    assert [name for name, method in methods(menzil.Menzil).items() if not method.__doc__] == []
