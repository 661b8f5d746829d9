"""The shapes of handlers, for type checkers: what a function gets, and what it may return."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

import psycopg

from menzil.model.message import Message
from menzil.model.outcome import Outcome

S_co = TypeVar("S_co", covariant=True)

Answer: TypeAlias = Outcome | None
#: What async handlers and plain functions give back.
Given: TypeAlias = Answer | Awaitable[Answer]

Plain: TypeAlias = Callable[[Message], Given]
WithConnection: TypeAlias = (
    Callable[[Message, psycopg.Connection[Any]], Answer]
    | Callable[[Message, psycopg.AsyncConnection[Any]], Awaitable[Answer]]
)
Blocking: TypeAlias = Callable[[Message], Answer]


class SessionMaker(Protocol[S_co]):
    """A sessionmaker of SQLAlchemy."""

    def begin(self) -> AbstractContextManager[S_co]: ...


class AsyncSessionMaker(Protocol[S_co]):
    """An async_sessionmaker of SQLAlchemy."""

    def begin(self) -> AbstractAsyncContextManager[S_co]: ...


F_plain = TypeVar("F_plain", bound=Plain)
F_conn = TypeVar("F_conn", bound=WithConnection)
F_blocking = TypeVar("F_blocking", bound=Blocking)

#: Hooks: how many arguments they get, and that those around a handler yield.
H_edge = TypeVar("H_edge", bound=Callable[[], object])
H_around = TypeVar(
    "H_around",
    bound=Callable[
        [Any],
        Iterator[Any] | AsyncIterator[Any] | AbstractContextManager[Any, Any] | AbstractAsyncContextManager[Any, Any],
    ],
)
H_error = TypeVar("H_error", bound=Callable[[Any, Any], object])
