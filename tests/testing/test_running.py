"""drain and perform: the real worker, in a hurry and bounded; one handler alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import orm

import menzil
from menzil.model.errors import UsageError
from menzil.testing import EndlessError, aio, assert_sent, drain, fire, perform
from menzil.testing.pointing import pointed
from tests.acceptance.test_orms import url

Answer = menzil.Outcome | None


@pytest.fixture
def channel(client: menzil.Menzil) -> str:
    name = f"c-{uuid4().hex[:8]}"
    client.channel_set(name)
    return name


def app_with(channel: str, handler: Callable[[menzil.Message], Answer], **options: Any) -> menzil.Worker:
    app = menzil.Worker(endpoints=False, **options)
    app.handler(channel)(handler)
    return app


def test_a_hurry_ends_delays_retries_and_defers(client: menzil.Menzil, channel: str) -> None:
    seen: list[tuple[int, int]] = []

    def handle(message: menzil.Message) -> Answer:
        seen.append((message.id, message.attempt))
        if message.attempt == 1:
            raise ValueError("not yet")
        return menzil.Defer(3600) if message.attempt == 2 else None

    app = app_with(channel, handle)
    one, two = client.send(channel, 1), client.send(channel, 2, delay=86400)
    with pytest.raises(ValueError, match="not yet") as raised:
        drain(app)
    assert f"message {one} of channel {channel!r}, attempt 1" in raised.value.__notes__[0]
    assert seen == [(one, 1)]
    done = drain(app, hurry=True)
    assert (done.completed, done.retried, done.deferred, done.dead, done.waiting) == (2, 1, 2, 0, 0)
    assert sorted(seen) == [(one, 1), (one, 2), (one, 3), (two, 1), (two, 2), (two, 3)]
    assert [(error.message_id, error.attempt) for error in done.errors] == [(two, 1)]


def test_a_dead_letter_raises_what_its_handler_raised_unless_asked_not_to(client: menzil.Menzil, channel: str) -> None:
    client.set_setting("default_max_retries", "2")

    def handle(message: menzil.Message) -> Answer:
        raise ValueError(f"attempt {message.attempt}")

    client.send_batch(channel, [1, 2])
    with pytest.raises(ValueError, match="attempt 3"):
        drain(app_with(channel, handle), hurry=True)
    client.send(channel, 3)
    done = drain(app_with(channel, handle), hurry=True, raise_errors=False)
    assert (done.completed, done.retried, done.dead) == (0, 2, 1)
    client.send(channel, 4)
    assert drain(app_with(channel, lambda _: menzil.Fail("no", retry=False))).dead == 1


@pytest.mark.parametrize("hurry", [False, True])
def test_a_message_that_comes_back_for_ever_ends_with_one_sentence(
    client: menzil.Menzil, channel: str, hurry: bool
) -> None:
    message = client.send(channel, 1)
    app = app_with(channel, lambda _: menzil.Defer(3600 if hurry else None))
    with pytest.raises(EndlessError, match=f"Message {message} of channel '{channel}' was tried 5 times"):
        drain(app, hurry=hurry, tries=5)
    assert client.status(message).status == "pending", "it was handed back"


def test_handlers_that_send_to_each_other_for_ever_end_too(client: menzil.Menzil, channel: str) -> None:
    client.send(channel, 1)

    def handle(message: menzil.Message) -> None:
        client.send(channel, 1)

    with pytest.raises(EndlessError, match="took 5 tries"):
        drain(app_with(channel, handle), limit=5)


def test_what_is_not_due_or_not_asked_for_waits(client: menzil.Menzil, channel: str) -> None:
    app = app_with(channel, lambda _: None)
    app.handler(channel + "-other")(lambda _: None)
    client.channel_set(channel + "-other")
    client.send(channel, 1, delay=60)
    client.send(channel + "-other", 1)
    done = drain(app, channels=[channel])
    assert (done.completed, done.waiting) == (0, 1)
    done = drain(app)
    assert (done.completed, done.waiting) == (1, 1)


def test_a_drain_runs_where_the_test_is_and_not_where_the_app_says(client: menzil.Menzil, channel: str) -> None:
    app = app_with(channel, lambda _: None)
    app.override("postgresql://nowhere.invalid/production")
    client.send(channel, 1)

    async def inside() -> int:
        with pytest.raises(UsageError, match="event loop"):
            drain(app)
        return (await aio.drain(app)).completed

    assert asyncio.run(inside()) == 1
    with pointed(client.dsn, app):
        assert app.dsn == client.dsn
    assert app.dsn == "postgresql://nowhere.invalid/production"


def test_a_client_of_a_module_follows_each_test_and_goes_back(client: menzil.Menzil, channel: str, db: str) -> None:
    kept, kept_async = menzil.Menzil(client.dsn), menzil.AsyncMenzil(client.dsn)
    kept.send(channel, 1)
    with menzil.Menzil(db) as other:
        other.channel_set(channel)
        for _ in range(2):
            with pointed(db, kept, kept_async):
                kept.send(channel, 2)
                asyncio.run(kept_async.send(channel, 3))
        kept.send(channel, 4)
        assert [message.payload for message in other.dequeue(10, channels=channel)] == [2, 3, 2, 3]
    assert [message.payload for message in client.dequeue(10, channels=channel)] == [1, 4]
    kept.close()


def test_a_handler_alone_gets_a_decoded_message_its_hooks_and_its_transaction(
    client: menzil.Menzil, channel: str
) -> None:
    app = menzil.Worker()
    table = f"t_{channel[2:]}"
    begun: ContextVar[str] = ContextVar("begun")

    @app.on_start
    async def start() -> None:
        begun.set("begun")

    @app.around
    def around(message: menzil.Message) -> Any:
        seen.append(("around", message.attempt, begun.get()))
        yield

    seen: list[Any] = []

    @app.handler(channel, transaction=True)
    def handle(message: menzil.Message, conn: psycopg.Connection[Any]) -> Answer:
        conn.execute(f"insert into {table} values (%s)", [message.payload["order"]])
        return menzil.Fail("no") if message.payload.get("fails") else None

    def count() -> int:
        with psycopg.connect(client.dsn) as other:
            return int((other.execute(f"select count(*) from {table}").fetchone() or (0,))[0])

    with psycopg.connect(client.dsn) as conn:
        conn.execute(f"create table {table} (id int)")
    assert perform(app, channel, {"order": 1}, attempt=3) == menzil.Complete()
    assert seen == [("around", 3, "begun")]
    assert perform(app, channel, {"order": 1, "fails": True}) == menzil.Fail("no")
    assert count() == 1, "what a failure wrote is rolled back"
    with psycopg.connect(client.dsn) as conn:
        perform(app, channel, {"order": 2}, conn=conn)
        assert count() == 1, "the connection is the caller's to commit"
        conn.rollback()
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        perform(app, channel, {"order": 2**40})
    with pytest.raises(UsageError, match=f"did you mean '{channel}'"):
        perform(app, channel + "x", {})


def test_a_handler_alone_gets_a_session_and_a_model_and_may_be_async(client: menzil.Menzil, channel: str) -> None:
    app = menzil.Worker()
    maker = orm.sessionmaker(sqlalchemy.create_engine(url(client.dsn)))
    seen: list[Any] = []

    @app.handler(channel, transaction=maker)
    def handle(message: menzil.Message, session: orm.Session) -> None:
        seen.append(session.scalar(sqlalchemy.text("select 41 + 1")))

    @app.handler("counted", payload=list[int])
    async def counted(message: menzil.MessageOf[list[int]]) -> Answer:
        return menzil.Defer(sum(message.payload), state=message.state)

    perform(app, channel, 1)
    assert seen == [42]
    assert perform(app, "counted", (1, 2), state=b"page 2") == menzil.Defer(3, state=b"page 2")
    assert asyncio.run(aio.perform(app, "counted", [4])) == menzil.Defer(4)
    with pytest.raises(UsageError, match="takes no connection"):
        perform(app, "counted", [1], conn=object())


def test_a_schedule_sends_when_the_test_says_so_and_as_often(client: menzil.Menzil, channel: str) -> None:
    client.schedule_create(channel, "0 3 * * *", channel, {"nightly": True})
    client.schedule_create(f"{channel}-other", "0 3 * * *", channel, {"other": True})
    first, second = fire(channel), asyncio.run(aio.fire(channel))
    assert first != second
    assert_sent(channel, {"nightly": True}, metadata={"schedule": channel}, count=2)
    assert_sent(channel, count=2)
    client.schedule_pause(channel)
    with pytest.raises(UsageError, match="is paused"):
        fire(channel)
    with pytest.raises(UsageError, match=f"did you mean '{channel}'"):
        fire(channel + "x")
