"""Hooks of a worker: when they are called, what they see, and what they change."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest

import menzil
from tests.acceptance.crew import Crew

POOL: contextvars.ContextVar[str] = contextvars.ContextVar("pool", default="none")
TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="none")


@pytest.fixture
def app(db: str) -> menzil.Worker:
    return menzil.Worker(db, endpoints=False, janitors=False)


@pytest.fixture
def story() -> list[str]:
    return []


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_hooks_are_called_in_order_around_every_handler(
    crew: Crew, app: menzil.Worker, story: list[str], kind: str
) -> None:
    @app.on_start
    async def opened() -> None:
        await asyncio.sleep(0)
        POOL.set("open")
        story.append("start")

    @app.on_start
    def started() -> None:
        story.append("start too")

    @app.around
    def outer(message: menzil.Message) -> Iterator[None]:
        story.append("outer")
        yield
        story.append("outer again")

    @app.around
    @contextmanager
    def inner(message: menzil.Message) -> Iterator[None]:
        token = TENANT.set(f"tenant of {message.payload}")
        try:
            yield
        finally:
            TENANT.reset(token)
            story.append("inner again")

    @app.on_stop
    def closed() -> None:
        story.append("closed last")

    @app.on_stop
    async def closed_first() -> None:
        story.append("closed first")

    async def awaited(message: menzil.Message) -> None:
        story.append(f"{message.payload}: {POOL.get()}, {TENANT.get()}")

    def plain(message: menzil.Message) -> None:
        assert threading.current_thread() is not threading.main_thread()
        story.append(f"{message.payload}: {POOL.get()}, {TENANT.get()}")

    app.handler("work", concurrency=1)(awaited if kind == "async" else plain)
    crew.send("work", "a", "b")
    assert app.run(once=True).delivered == 2
    each = ["outer", "{0}: open, tenant of {0}", "inner again", "outer again"]
    assert story == [
        "start",
        "start too",
        *(line.format("a") for line in each),
        *(line.format("b") for line in each),
        "closed first",
        "closed last",
    ]


def test_an_async_hook_surrounds_async_handlers(crew: Crew, app: menzil.Worker, story: list[str]) -> None:
    @app.around
    async def traced(message: menzil.Message) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        story.append("before")
        yield
        story.append("after")

    @app.handler("work")
    async def work(message: menzil.Message) -> None:
        story.append("handler")

    crew.send("work", "a")
    app.run(once=True)
    assert story == ["before", "handler", "after"]


def test_an_async_hook_that_would_leave_out_a_plain_function_is_refused(crew: Crew, app: menzil.Worker) -> None:
    @app.around
    async def traced(message: menzil.Message) -> AsyncIterator[None]:
        yield

    @app.handler("work")
    def work(message: menzil.Message) -> None: ...

    crew.send("work", "a")
    with pytest.raises(menzil.UsageError, match=r"traced is async, and the handler .*work is a plain function"):
        app.run(once=True)
    assert crew.ask("select count(*) from menzil.queue where num_attempts = 0") == 1


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_every_exception_is_told_once_and_stays_a_failure(
    crew: Crew, app: menzil.Worker, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    told: list[tuple[int, str]] = []

    @app.on_error
    def report(message: menzil.Message, error: BaseException) -> None:
        told.append((message.id, f"{error!r} for {TENANT.get()}"))

    @app.on_error
    async def report_too(message: menzil.Message, error: BaseException) -> None:
        raise RuntimeError("the reporter is down")

    @app.around
    def tenant(message: menzil.Message) -> Iterator[None]:
        TENANT.set(message.payload)
        yield

    async def awaited(message: menzil.Message) -> menzil.Outcome | None:
        return plain(message)

    def plain(message: menzil.Message) -> menzil.Outcome | None:
        if message.payload == "bad":
            raise ValueError("no")
        return menzil.Fail("returned") if message.payload == "failed" else None

    app.handler("work")(awaited if kind == "async" else plain)
    sent = dict(zip(("bad", "failed", "good"), crew.send("work", "bad", "failed", "good"), strict=True))
    tally = app.run(once=True)
    assert (tally.failed, tally.delivered) == (2, 1)
    ((id, said),) = told
    assert id == sent["bad"]
    assert said.startswith("ValueError('no') for ")
    assert kind == "plain" or said.endswith("for bad")  # what a thread sets in its context stays there
    (line,) = [text for text in caplog.messages if text.startswith("hook_failed")]
    assert "the reporter is down" in line
    assert "ValueError: no" in crew.ask("select last_error from menzil.queue where id = %s", sent["bad"])


def test_a_hook_can_deal_with_an_exception(crew: Crew, app: menzil.Worker) -> None:
    @app.around
    def ignore_missing(message: menzil.Message) -> Iterator[None]:
        with suppress(KeyError):
            yield

    @app.handler("work")
    async def work(message: menzil.Message) -> None:
        raise {"key": KeyError, "value": ValueError}[message.payload]("no")

    crew.send("work", "key", "value")
    tally = app.run(once=True)
    assert (tally.delivered, tally.failed) == (1, 1)


def test_what_a_hook_raises_rolls_the_transaction_back(crew: Crew, app: menzil.Worker) -> None:
    crew.conn.execute("create table effect (id bigint primary key)")

    @app.around
    def check(message: menzil.Message) -> Iterator[None]:
        yield
        if message.payload == "bad":
            raise ValueError("not allowed")

    @app.handler("work", transaction=True)
    def work(message: menzil.Message, conn: psycopg.Connection[Any]) -> None:
        conn.execute("insert into effect values (%s)", (message.id,))

    (_, good) = crew.send("work", "bad", "good")
    tally = app.run(once=True)
    assert (tally.delivered, tally.failed) == (1, 1)
    assert crew.ask("select array_agg(id) from effect") == [good]


def test_a_worker_whose_start_hook_fails_does_not_start(crew: Crew, app: menzil.Worker, story: list[str]) -> None:
    @app.on_start
    def broken() -> None:
        raise RuntimeError("no model file")

    app.on_stop(lambda: story.append("stop"))

    @app.handler("work")
    async def work(message: menzil.Message) -> None:
        story.append("work")

    crew.send("work", "a")
    with pytest.raises(RuntimeError, match="no model file"):
        app.run(once=True)
    assert story == []
    assert crew.ask("select count(*) from menzil.get_worker_status()") == 0


def test_no_message_sees_what_a_hook_set_for_another(crew: Crew, app: menzil.Worker) -> None:
    seen: list[str] = []

    @app.around
    def leaky(message: menzil.Message) -> Iterator[None]:
        seen.append(TENANT.get())
        TENANT.set(message.payload)
        yield

    @app.handler("work", concurrency=1)
    async def work(message: menzil.Message) -> None: ...

    crew.send("work", *"abcdef")
    app.run(once=True)
    assert seen == ["none"] * 6


def test_hooks_that_could_never_work_are_refused_when_they_are_written() -> None:
    app = menzil.Worker("postgresql:///nowhere")

    def no_yield(message: menzil.Message) -> None: ...

    def takes_one(message: menzil.Message) -> None: ...

    with pytest.raises(menzil.UsageError, match="no_yield has no yield"):
        app.around(no_yield)
    for register in (app.on_start, app.on_stop, app.on_error):
        with pytest.raises(menzil.UsageError, match="cannot take"):
            register(takes_one)  # type: ignore[type-var]
    with pytest.raises(menzil.UsageError, match="must be a function"):
        app.on_start(None)


class Table:
    """Like an array of numpy: it is compared piece by piece, and what comes out is neither true nor false."""

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise ValueError("the truth value of a table is ambiguous")


TABLE: contextvars.ContextVar[Table] = contextvars.ContextVar("table")


def test_context_variables_that_cannot_be_compared_keep_no_slot(crew: Crew, app: menzil.Worker) -> None:
    first, found = Table(), []

    @app.on_start
    async def load() -> None:
        TABLE.set(first)

    @app.handler("work", concurrency=1)
    async def handle(message: menzil.Message) -> None:
        found.append(TABLE.get())
        TABLE.set(Table())

    crew.send("work", *range(20))
    tally = asyncio.run(asyncio.wait_for(app.serve(once=True), 60))
    assert tally.delivered == 20
    assert all(one is first for one in found)
