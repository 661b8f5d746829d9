"""A handler: the user's function for the messages of some channels, and how it is called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from menzil.model.decode import payload_decoder
from menzil.model.errors import UsageError
from menzil.model.message import Message, MessageOf
from menzil.worker.hooks import is_async
from menzil.worker.ways import Way, way_of

Function = Callable[..., Any]

#: Seconds of the longest lease that the database grants.
LONGEST = 7 * 86_400


def check_channels(channels: tuple[object, ...]) -> None:
    """Refuse what does not name channels, such as the function itself: @app.handler without parentheses."""
    if len(channels) == 1 and callable(channels[0]):
        raise UsageError("@app.handler needs the names of its channels.", hint='write @app.handler("emails")')
    if not channels or not all(isinstance(name, str) and name for name in channels):
        raise UsageError("A handler needs the names of its channels.", hint='write @app.handler("emails")')


@dataclass(frozen=True, slots=True)
class Handler:
    """A function and the channels it serves. With a concurrency of its own it has slots of its own."""

    channels: tuple[str, ...]
    function: Function
    concurrency: int | None = None
    lease: float | None = None
    transaction: Any = None
    payload: Any = None

    def __post_init__(self) -> None:
        """Refuse what could never work now, not at the first message."""
        check_channels(self.channels)
        if not callable(self.function):
            raise UsageError(f"A handler must be a function, not {type(self.function).__name__}.")
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise UsageError(f"The handler {self.name} has a yield, so calling it would do nothing.")
        if self.concurrency is not None and (type(self.concurrency) is not int or self.concurrency < 1):
            raise UsageError("The concurrency of a handler is a whole number, 1 or more.")
        if self.lease is not None and not 1 <= self.lease <= LONGEST:
            raise UsageError(
                "The lease of a handler is 1 second to 7 days.", hint="heartbeats keep it for as long as needed"
            )
        self._check_way()
        if self.payload is not None:
            payload_decoder(self.payload)
        wanted = self.way.arguments
        try:
            inspect.signature(self.function).bind(*wanted)
        except TypeError:
            hint = f"with this transaction= it also gets {self.way.value}" if len(wanted) > 1 else "it gets one message"
            raise UsageError(f"The handler {self.name} cannot take ({', '.join(wanted)}).", hint=hint) from None
        except ValueError:
            pass  # a builtin without a signature: it is called and may complain then

    def _check_way(self) -> None:
        way = self.way
        if way is Way.ASYNC_SESSION and not self.is_async:
            raise UsageError(
                f"The handler {self.name} is a plain function, and its sessions are async.",
                hint="write async def, or give a sessionmaker",
            )
        if way is Way.SESSION and self.is_async:
            raise UsageError(
                f"The handler {self.name} is async, and its sessions are not.", hint="give an async_sessionmaker"
            )
        if way is Way.DJANGO and self.is_async:
            raise UsageError(
                f"The handler {self.name} is async, and Django's transactions are not.", hint="write def, not async def"
            )

    @property
    def way(self) -> Way:
        """Which transaction it runs in."""
        return way_of(self.transaction)

    @property
    def name(self) -> str:
        """What it is called in texts."""
        return getattr(self.function, "__qualname__", None) or type(self.function).__qualname__

    @property
    def is_async(self) -> bool:
        """Whether it is awaited; others run in threads."""
        return is_async(self.function)

    @property
    def call(self) -> Function:
        """What to call with a message as it was leased: the function, and the decoding of the payload before it."""
        function, kind = self.function, self.payload
        if kind is None:
            return function
        decode = payload_decoder(kind)

        @functools.wraps(function)
        async def awaited(message: Message, *rest: Any) -> Any:
            return await function(MessageOf.of(message, decode(message)), *rest)

        @functools.wraps(function)
        def plain(message: Message, *rest: Any) -> Any:
            return function(MessageOf.of(message, decode(message)), *rest)

        return awaited if self.is_async else plain

    @property
    def is_apart(self) -> bool:
        """Whether it has slots of its own."""
        return self.concurrency is not None or self.lease is not None or self.way is not Way.NONE
