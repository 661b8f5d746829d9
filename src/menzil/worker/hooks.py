"""What a program does beside its handlers: when the worker starts and stops, around messages, after exceptions."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from menzil.model.errors import UsageError
from menzil.model.message import Message
from menzil.worker.django import tidily, tidily_awaited

if TYPE_CHECKING:
    from menzil.worker.log import Log
    from menzil.worker.threads import Threads

Hook = Callable[..., Any]


@dataclass(slots=True)
class Hooks:
    """The hooks of one worker, each list in the order they were written."""

    on_start: list[Hook] = field(default_factory=list)
    on_stop: list[Hook] = field(default_factory=list)
    around: list[Around] = field(default_factory=list)
    on_error: list[Hook] = field(default_factory=list)

    async def start(self) -> None:
        """Call on_start in this task, so that handlers see context variables that it sets. What it raises is raised."""
        for hook in self.on_start:
            await _call(hook)

    async def stop(self, log: Log) -> None:
        """Call on_stop, the last one first."""
        for hook in reversed(self.on_stop):
            try:
                await _call(hook)
            except Exception as error:
                _failed(log, hook, error)

    async def tell(self, message: Message, error: BaseException, threads: Threads, log: Log) -> None:
        """Call on_error; it changes nothing about the failure. Plain functions run in a thread: they may block."""
        for hook in self.on_error:
            try:
                if is_async(hook):
                    await tidily_awaited(hook)(message, error)
                else:
                    await threads.start(tidily(hook), message, error)
            except Exception as raised:
                _failed(log, hook, raised)


@dataclass(frozen=True, slots=True)
class Around:
    """A hook around each message: what makes a context manager for it."""

    name: str
    make: Callable[[Message], Any]
    is_async: bool


def read_around(hook: Hook) -> Around:
    """Accept a generator function with one yield, also one that is a context manager already, or a class of these."""
    check(hook, "message")
    name = getattr(hook, "__qualname__", type(hook).__qualname__)
    inner = inspect.unwrap(hook)
    if inspect.isasyncgenfunction(inner):
        return Around(name, hook if inner is not hook else asynccontextmanager(hook), True)
    if inspect.isgeneratorfunction(inner):
        return Around(name, hook if inner is not hook else contextmanager(hook), False)
    if hasattr(hook, "__aenter__") or hasattr(hook, "__enter__"):
        return Around(name, hook, not hasattr(hook, "__enter__"))
    raise UsageError(
        f"The around hook {name} has no yield.", hint="write what comes before the handler, yield, and what comes after"
    )


def check(hook: Hook, *arguments: str) -> None:
    """Refuse a hook that cannot be called, when it is written."""
    if not callable(hook):
        raise UsageError(f"A hook must be a function, not {type(hook).__name__}.", hint="write it without parentheses")
    try:
        inspect.signature(hook).bind(*arguments)
    except TypeError:
        name = getattr(hook, "__qualname__", type(hook).__qualname__)
        raise UsageError(f"The hook {name} cannot take ({', '.join(arguments)}).") from None
    except ValueError:
        pass  # a builtin without a signature


def surround(function: Hook, hooks: Sequence[Around], *, awaited: bool) -> Hook:
    """Return the handler inside its around hooks, the first one outermost."""
    if not hooks:
        return function
    if not awaited:
        for hook in hooks:
            if hook.is_async:
                name = getattr(function, "__qualname__", "of a channel")
                raise UsageError(
                    f"The around hook {hook.name} is async, and the handler {name} is a plain function.",
                    hint="write the hook with def: it serves both",
                )

    @functools.wraps(function)
    async def in_loop(message: Message, *rest: Any) -> Any:
        async with AsyncExitStack() as stack:
            for hook in hooks:
                manager = hook.make(message)
                if hook.is_async:
                    await stack.enter_async_context(manager)
                else:
                    stack.enter_context(manager)
            return await function(message, *rest)

    @functools.wraps(function)
    def in_thread(message: Message, *rest: Any) -> Any:
        with ExitStack() as stack:
            for hook in hooks:
                stack.enter_context(hook.make(message))
            return function(message, *rest)

    return in_loop if awaited else in_thread


def telling(
    call: Callable[[Message], Awaitable[Any]], tell: Callable[[Message, BaseException], Awaitable[None]]
) -> Callable[[Message], Awaitable[Any]]:
    """Return the call, and on_error behind it."""

    async def told(message: Message) -> Any:
        try:
            return await call(message)
        except BaseException as error:
            task = asyncio.current_task()
            if not (isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling()):
                await tell(message, error)
            raise

    return told


def is_async(hook: Hook) -> bool:
    """Whether it is awaited; also an object with an async __call__."""
    call = getattr(hook, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(call)


async def _call(hook: Hook) -> None:
    # Plain ones run here and not in a thread: nothing else is under way, and what they set in the context stays.
    result = hook()
    if inspect.isawaitable(result):
        await result


def _failed(log: Log, hook: Hook, error: Exception) -> None:
    name = getattr(hook, "__qualname__", type(hook).__qualname__)
    log.error("hook_failed", hook=name, error=f"{type(error).__name__}: {error}")
