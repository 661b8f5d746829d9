"""Handlers and hooks that a type checker accepts. mypy reads this file; nothing runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import psycopg
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

import menzil

app = menzil.Worker()


@dataclass
class Order:
    number: int


class Row(TypedDict):
    number: int


@app.handler("a")
def plain(message: menzil.Message) -> None: ...


@app.handler("b", "c", concurrency=3, lease=60)
async def awaited(message: menzil.Message) -> menzil.Outcome | None:
    return menzil.Defer(seconds=1)


@app.handler("d")
def untyped(message):  # type: ignore[no-untyped-def]
    return menzil.Complete()


@app.handler("e")
async def fails(message: menzil.Message) -> menzil.Fail:
    return menzil.Fail("no")


@app.handler("f", transaction=True)
def books(message: menzil.Message, conn: psycopg.Connection[Any]) -> None: ...


@app.handler("g", transaction=True)
async def books_later(message: menzil.Message, conn: psycopg.AsyncConnection[Any]) -> menzil.Complete | None:
    return None


@app.handler("h", transaction=orm.sessionmaker())
def with_session(message: menzil.Message, session: orm.Session) -> None:
    session.add(message)


@app.handler("i", transaction=async_sessionmaker())
async def with_async_session(message: menzil.Message, session: AsyncSession) -> None: ...


@app.handler("j", transaction="django")
def with_django(message: menzil.Message) -> None: ...


@app.handler("k", payload=Order)
async def decoded(message: menzil.MessageOf[Order]) -> None:
    assert_type(message.payload, Order)
    assert_type(message.payload.number, int)


@app.handler("l", payload=Row)
def decoded_row(message: menzil.MessageOf[Row]) -> None:
    assert_type(message.payload["number"], int)


@app.handler("m", payload=Order)
def decoded_untyped(message: menzil.Message) -> None: ...


@app.handler("n", payload=Order, transaction=True)
def decoded_books(message: menzil.MessageOf[Order], conn: psycopg.Connection[Any]) -> None: ...


@app.on_start
async def start() -> None: ...


@app.on_stop
def stop() -> None: ...


@app.around
def around(message: menzil.Message) -> Iterator[None]:
    yield


@app.around
async def around_later(message: menzil.Message) -> AsyncIterator[None]:
    yield


@app.on_error
def report(message: menzil.Message, error: BaseException) -> None: ...


plain(menzil.Message(1, "a"))  # the decorator leaves the function as it was
