"""perform: one call of one handler, without a queue: its payload decoded, its hooks around it, its transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import copy_context
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import psycopg

from menzil.model.errors import UsageError
from menzil.model.message import Message
from menzil.model.outcome import Fail, Outcome
from menzil.model.wire import json_dumps
from menzil.ops import values
from menzil.testing.draining import refuse_loop
from menzil.testing.here import here
from menzil.worker import Worker, outcomes
from menzil.worker.handler import Handler
from menzil.worker.hooks import surround
from menzil.worker.log import Hide, Log
from menzil.worker.ways import Way


class _UndoError(Exception):
    """Rolls back what a handler wrote before it returned Fail."""

    def __init__(self, outcome: Fail) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


def perform(
    app: Worker, channel: str, payload: Any, *, conn: Any = None, dsn: str | None = None, **message: Any
) -> Outcome:
    """Call the handler of this channel with such a message, and return its outcome; what it raises is raised.

    The payload travels through JSON, as it does when it is sent. A handler with a transaction gets one on the test's
    database, which is committed unless the handler fails; or it gets `conn`, and nothing is committed.

    conn     the connection or session that a handler with a transaction gets
    message  attempt, state, headers, ordering_key … of the message
    """
    handler, call, made = _prepare(app, channel, payload, message)
    hooks, context = app._hooks, copy_context()
    if not handler.is_async and not hooks.on_start and not hooks.on_stop:
        return _call_sync(handler, call, made, conn, dsn)
    refuse_loop("perform")
    with asyncio.Runner() as runner:
        if handler.is_async:
            return runner.run(perform_async(app, channel, payload, conn=conn, dsn=dsn, **message))
        # In this thread: Django keeps a connection for each.
        runner.run(hooks.start(), context=context)
        try:
            return context.run(_call_sync, handler, call, made, conn, dsn)
        finally:
            runner.run(hooks.stop(Log(Hide())), context=context)


async def perform_async(
    app: Worker, channel: str, payload: Any, *, conn: Any = None, dsn: str | None = None, **message: Any
) -> Outcome:
    """The same, awaited; a plain function runs in a thread."""
    handler, call, made = _prepare(app, channel, payload, message)
    await app._hooks.start()
    try:
        if not handler.is_async:
            return await asyncio.to_thread(_call_sync, handler, call, made, conn, dsn)
        try:
            async with _transaction_async(handler, conn, dsn) as given:
                outcome = outcomes.read(await call(made, *given), channel)
                if isinstance(outcome, Fail):
                    raise _UndoError(outcome)
                return outcome
        except _UndoError as undo:
            return undo.outcome
    finally:
        await app._hooks.stop(Log(Hide()))


def _prepare(
    app: Worker, channel: str, payload: Any, fields: dict[str, Any]
) -> tuple[Handler, Callable[..., Any], Message]:
    handler = _handler(app, channel)
    call = surround(handler.call, app._hooks.around, awaited=handler.is_async)
    message_id = fields.pop("id", 1)
    if isinstance(payload, bytes | bytearray | memoryview):
        return handler, call, Message(message_id, channel, content=bytes(payload), **fields)
    written = app._options.loads(values.payload("payload", payload, json_dumps))
    return handler, call, Message(message_id, channel, written, **fields)


def _handler(app: Worker, channel: str) -> Handler:
    if not isinstance(app, Worker):
        raise UsageError(f"perform takes a menzil.Worker, not {type(app).__name__}.")
    by_name = {name: handler for handler in app._handlers for name in handler.channels}
    if channel not in by_name:
        near = get_close_matches(str(channel), by_name, 1, 0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(by_name)) or 'none'}"
        raise UsageError(f"The app has no handler for {channel!r}.", hint=hint)
    return by_name[channel]


def _call_sync(handler: Handler, call: Callable[..., Any], message: Message, conn: Any, dsn: str | None) -> Outcome:
    try:
        with _transaction(handler, conn, dsn) as given:
            outcome = outcomes.read(call(message, *given), message.channel)
            if isinstance(outcome, Fail):
                raise _UndoError(outcome)
            return outcome
    except _UndoError as undo:
        return undo.outcome


@contextmanager
def _transaction(handler: Handler, conn: Any, dsn: str | None) -> Any:
    """What the handler gets besides the message, in a transaction."""
    way = handler.way
    _refuse_conn(way, conn)
    if conn is not None:
        yield (conn,)
    elif way is Way.PSYCOPG:
        with psycopg.connect(here(dsn, "perform")) as own:
            yield (own,)
    elif way is Way.SESSION:
        begun: AbstractContextManager[Any] = handler.transaction.begin()
        with begun as session:
            yield (session,)
    elif way is Way.DJANGO:
        alias = handler.transaction.partition(":")[2] or "default"
        with import_module("django.db.transaction").atomic(using=alias):
            yield ()
    else:
        yield ()


@asynccontextmanager
async def _transaction_async(handler: Handler, conn: Any, dsn: str | None) -> Any:
    way = handler.way
    _refuse_conn(way, conn)
    if conn is not None:
        yield (conn,)
    elif way is Way.PSYCOPG:
        async with await psycopg.AsyncConnection.connect(here(dsn, "perform")) as own:
            yield (own,)
    elif way is Way.ASYNC_SESSION:
        begun: AbstractAsyncContextManager[Any] = handler.transaction.begin()
        async with begun as session:
            yield (session,)
    else:
        yield ()


def _refuse_conn(way: Way, conn: Any) -> None:
    if conn is not None and len(way.arguments) == 1:
        raise UsageError("This handler takes no connection.", hint="leave conn out, or give the handler transaction=")
