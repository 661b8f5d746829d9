"""What a program registers with a worker: handlers and hooks. Type checkers see which shapes of functions fit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar, overload

from menzil.model.durations import Seconds, in_seconds
from menzil.model.errors import UsageError
from menzil.model.message import Message, MessageOf
from menzil.worker.handler import Handler, check_channels
from menzil.worker.hooks import Hook, Hooks, check, read_around
from menzil.worker.shapes import (
    Answer,
    AsyncSessionMaker,
    F_blocking,
    F_conn,
    F_plain,
    Given,
    H_around,
    H_edge,
    H_error,
    SessionMaker,
)

H = TypeVar("H", bound=Hook)
P = TypeVar("P")
S = TypeVar("S")


class Registering:
    """The decorators of a worker."""

    def __init__(self) -> None:
        self._handlers: list[Handler] = []
        self._hooks = Hooks()

    @overload
    def handler(
        self,
        *channels: str,
        concurrency: int | None = None,
        lease: Seconds | None = None,
        transaction: Literal[False] | None = None,
        payload: None = None,
    ) -> Callable[[F_plain], F_plain]: ...
    @overload
    def handler(
        self,
        *channels: str,
        concurrency: int | None = None,
        lease: Seconds | None = None,
        transaction: Literal[True],
        payload: None = None,
    ) -> Callable[[F_conn], F_conn]: ...
    @overload
    def handler(
        self,
        *channels: str,
        concurrency: int | None = None,
        lease: Seconds | None = None,
        transaction: str,
        payload: None = None,
    ) -> Callable[[F_blocking], F_blocking]: ...
    @overload
    def handler(
        self,
        *channels: str,
        concurrency: int | None = None,
        lease: Seconds | None = None,
        transaction: SessionMaker[S],
        payload: None = None,
    ) -> Callable[[Callable[[Message, S], Answer]], Callable[[Message, S], Answer]]: ...
    @overload
    def handler(
        self,
        *channels: str,
        concurrency: int | None = None,
        lease: Seconds | None = None,
        transaction: AsyncSessionMaker[S],
        payload: None = None,
    ) -> Callable[[Callable[[Message, S], Awaitable[Answer]]], Callable[[Message, S], Awaitable[Answer]]]: ...
    @overload
    def handler(
        self,
        *channels: str,
        concurrency: int | None = None,
        lease: Seconds | None = None,
        transaction: Literal[False] | None = None,
        payload: type[P],
    ) -> Callable[[Callable[[MessageOf[P]], Given]], Callable[[MessageOf[P]], Given]]: ...
    @overload
    def handler(
        self,
        *channels: str,
        concurrency: int | None = None,
        lease: Seconds | None = None,
        transaction: object = None,
        payload: Any,
    ) -> Callable[[H], H]: ...

    def handler(
        self,
        *channels: str,
        concurrency: int | None = None,
        lease: Seconds | None = None,
        transaction: object = None,
        payload: Any = None,
    ) -> Any:
        """Let the decorated function handle the messages of these channels.

        It gets the message. It returns nothing, Complete, Defer or Fail; an exception is tried again.

        concurrency  how many at once, in slots of its own
        lease        seconds until a silent worker loses a message, in slots of its own
        transaction  True: it also gets a psycopg connection whose transaction commits together with the end of the
                     message; a sessionmaker or async_sessionmaker of SQLAlchemy: a session; "django": Django's own
        payload      a dataclass, TypedDict or pydantic model that message.payload becomes
        """
        check_channels(channels)

        def add(function: Hook) -> Hook:
            taken = {name for handler in self._handlers for name in handler.channels} & set(channels)
            if taken:
                raise UsageError(f"The channel {sorted(taken)[0]!r} already has a handler.")
            self._handlers.append(
                Handler(channels, function, concurrency, in_seconds("lease", lease), transaction, payload)
            )
            return function

        return add

    def on_start(self, hook: H_edge) -> H_edge:
        """Call the decorated function when the worker starts, before it leases; an exception ends the worker."""
        check(hook)
        self._hooks.on_start.append(hook)
        return hook

    def on_stop(self, hook: H_edge) -> H_edge:
        """Call the decorated function when the worker stops, after the last delivery."""
        check(hook)
        self._hooks.on_stop.append(hook)
        return hook

    def around(self, hook: H_around) -> H_around:
        """Run the decorated generator around every handler: what stands before its yield, the handler, and the rest."""
        self._hooks.around.append(read_around(hook))
        return hook

    def on_error(self, hook: H_error) -> H_error:
        """Call the decorated function with the message and the exception whenever a handler raises one."""
        check(hook, "message", "error")
        self._hooks.on_error.append(hook)
        return hook
