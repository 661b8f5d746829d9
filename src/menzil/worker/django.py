"""A worker that is a Django app: its threads look after Django's connections, as a web server does between requests.

Django keeps a connection per thread, and closes it or replaces a broken one only when a request begins or ends. A
thread of a worker has no requests: without this it would keep a connection for ever, and one that the server closed
would fail every message.

What an async handler asks the ORM for runs in one thread of asgiref, on one connection for all async handlers. Between
the messages of one of them others are in the middle of their work, so this connection is looked after when none of them
is under way; meanwhile only one that broke is closed.
"""

from __future__ import annotations

import sys
from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

_under_way: set[object] = set()  # messages that async handlers have begun


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
    close_old, close_broken = in_thread(db.close_old_connections), in_thread(_close_broken)

    async def tidy(*args: Any) -> Any:
        message, alone = object(), not _under_way
        _under_way.add(message)
        try:
            if alone:
                await close_old()
            result = await call(*args)
        except CancelledError:
            _under_way.discard(message)
            raise  # without waiting for the thread: the worker may be about to end
        except BaseException:
            _under_way.discard(message)
            await (close_broken(db) if _under_way else close_old())
            raise
        _under_way.discard(message)
        if not _under_way:
            await close_old()
        return result

    return tidy


def _close_broken(db: Any) -> None:
    for one in db.connections.all(initialized_only=True):
        if one.errors_occurred and not one.in_atomic_block and not one.is_usable():
            one.close()


def let_go() -> None:
    """Close the connections of a thread that ends: with CONN_MAX_AGE they would stay open in the server."""
    db = _databases()
    if db is not None:
        db.connections.close_all()
