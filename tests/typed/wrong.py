"""Handlers that a type checker refuses: each line marked `# wrong` is an error, and no other line is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

import menzil

app = menzil.Worker()


@dataclass
class Order:
    number: int


@app.handler  # wrong: without parentheses
def no_parentheses(message: menzil.Message) -> None: ...


@app.handler(["a"])  # wrong: a list of names
def a_list(message: menzil.Message) -> None: ...


@app.handler("a")  # wrong: no argument
def takes_nothing() -> None: ...


@app.handler("a")  # wrong: two arguments without a transaction
def takes_two(message: menzil.Message, conn: psycopg.Connection[Any]) -> None: ...


@app.handler("a")  # wrong: another type of message
def takes_text(message: str) -> None: ...


@app.handler("a")  # wrong: returns a value
def returns_text(message: menzil.Message) -> str:
    return "done"


@app.handler("a")  # wrong: returns a class
async def returns_class(message: menzil.Message) -> type[menzil.Defer]:
    return menzil.Defer


@app.handler("a", transaction=True)  # wrong: no connection
def takes_no_connection(message: menzil.Message) -> None: ...


@app.handler("a", transaction=True)  # wrong: an async handler gets an AsyncConnection
async def takes_sync_connection(message: menzil.Message, conn: psycopg.Connection[Any]) -> None: ...


@app.handler("a", transaction="django")  # wrong: Django's transactions are not async
async def async_django(message: menzil.Message) -> None: ...


@app.handler("a", transaction=orm.sessionmaker())  # wrong: sessions that are not async
async def async_with_session(message: menzil.Message, session: orm.Session) -> None: ...


@app.handler("a", transaction=async_sessionmaker())  # wrong: async sessions
def plain_with_async_session(message: menzil.Message, session: AsyncSession) -> None: ...


@app.handler("a", payload=Order)  # wrong: another payload
def takes_other_payload(message: menzil.MessageOf[int]) -> None: ...


@app.handler("a", concurency=3)  # wrong: misspelled
def misspelled(message: menzil.Message) -> None: ...
