"""A worker that is a Django app: its threads look after Django's connections, as a web server does between requests.

Django keeps a connection per thread, and closes it or replaces a broken one only when a request begins or ends. A
thread of a worker has no requests: without this it would keep a connection for ever, and one that the server closed
would fail every message.

What an async handler asks the ORM for runs in one thread of asgiref, on one connection for all async handlers. Between
the messages of one of them others are in the middle of their work, so this connection is looked after when none of them
is under way; meanwhile only one that broke is closed. That thread does one thing after the other, so no message waits
for it: what is handed to it now is done before anything that a handler asks for later.
"""

from __future__ import annotations

import sys
from asyncio import Task, get_running_loop, sleep
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

#: What is done with connections: close those that are older than Django keeps them, or those that broke.
OLD, BROKEN = "old", "broken"

_under_way: set[object] = set()  # messages that async handlers have begun
_closing: set[Task[None]] = set()  # a task to which nothing refers may be collected
_unsent: set[object] = set()  # those that asgiref's thread has not got yet
_waiting: set[str] = set()  # kinds that the thread has not begun


def _databases() -> Any:
    """django.db, if the program uses it."""
    db: Any = sys.modules.get("django.db")
    settings: Any = getattr(sys.modules.get("django.conf"), "settings", None)
    return db if db is not None and getattr(settings, "configured", False) else None


def tidily(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the call with what Django does before and after a request, if the program uses Django's databases."""
    db = _databases()
    if db is None:
        return call

    def tidy(*args: Any) -> Any:
        db.close_old_connections()
        try:
            return call(*args)
        finally:
            db.close_old_connections()

    return tidy


def tidily_awaited(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The same for what is awaited."""
    db = _databases()
    if db is None:
        return call
    in_thread = import_module("asgiref.sync").sync_to_async
    close_old, close_broken = in_thread(_close_old), in_thread(_close_broken)

    async def tidy(*args: Any) -> Any:
        message = object()
        if not _under_way:
            _hand_over(OLD, close_old, db)
        _under_way.add(message)
        is_raised = True
        try:
            if _unsent:
                await sleep(0)  # the thread gets them before what this handler asks for
            result = await call(*args)
            is_raised = False
            return result
        finally:
            _under_way.discard(message)
            if not _under_way:
                _hand_over(OLD, close_old, db)
            elif is_raised:
                _hand_over(BROKEN, close_broken, db)

    return tidy


def _hand_over(kind: str, closing: Callable[[Any], Awaitable[None]], db: Any) -> None:
    """Let asgiref's thread do it when its turn comes.

    In a task of its own, and so in a context of its own: asgiref sets a variable in the context that awaits its thread,
    and a slot whose context changed is not used again. Where the thread hangs, the end of the worker leaves it behind.
    """
    if kind in _waiting:
        return  # it comes after all that has happened, and before what is asked for from now on
    try:
        loop = get_running_loop()
    except RuntimeError:
        return  # the loop is over, and a handler that it left is thrown away
    sign = object()

    async def close() -> None:
        _unsent.discard(sign)
        try:
            await closing(db)
        except Exception as error:
            from menzil.worker.log import Hide, Log  # here: a program that only imports Worker needs no log

            Log(Hide()).warning("connection_not_closed", error=f"{type(error).__name__}: {error}")

    def end(task: Task[None]) -> None:
        _closing.discard(task)
        _unsent.discard(sign)
        _waiting.discard(kind)

    _waiting.add(kind)
    _unsent.add(sign)
    task = loop.create_task(close(), name="menzil-django")
    _closing.add(task)
    task.add_done_callback(end)


def _close_old(db: Any) -> None:
    _waiting.discard(OLD)
    db.close_old_connections()


def _close_broken(db: Any) -> None:
    _waiting.discard(BROKEN)
    for one in db.connections.all(initialized_only=True):
        if one.errors_occurred and not one.in_atomic_block and not one.is_usable():
            one.close()


def let_go() -> None:
    """Close the connections of a thread that ends: with CONN_MAX_AGE they would stay open in the server."""
    db = _databases()
    if db is not None:
        db.connections.close_all()
